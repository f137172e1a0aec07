"""FlexVolume drivers: executables on this machine that attach and detach volumes of their type.

The driver ``VENDOR/NAME`` is the file ``DIR/VENDOR~NAME/NAME`` under --flex-volume-plugin-dir. It is called once with
``init`` for its capabilities; drivers that do not attach are left to kubelets. Drivers may be added, changed and
removed at any time.

upstream: pkg/volume/flexvolume
"""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from kcm_cli.controllers.persistentvolume_attach_detach.attacher import TIMEOUT_S, AttachError
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_map

log = logging.getLogger(__name__)
SCAN_S = 10.0
_TO_END_S = 0.5
"""How often the directory is looked at for drivers."""


class FlexError(AttachError):
    """A driver failed, or its output could not be parsed."""


class Unsupported(FlexError):
    """The driver does not support the command."""


class _Driver(msgspec.Struct, frozen=True):
    path: Path
    changed_ns: int
    attaches: bool


class FlexDrivers:
    """The drivers in a folder. ``changed()`` is called when drivers were added or removed. ``folder``: empty for
    none."""

    def __init__(self, folder: str, changed: Callable[[], None]) -> None:
        self._folder = Path(folder) if folder else None
        self._changed = changed
        self._drivers: dict[str, _Driver] = {}

    def attaches(self, name: str) -> bool:
        """Whether there is a driver of this name that attaches volumes."""
        found = self._drivers.get(name)
        return found is not None and found.attaches

    async def scan(self) -> None:
        """Look for added, changed and removed drivers. New ones are called in parallel."""
        before = {name: one for name, one in self._drivers.items() if one.attaches}
        found = await asyncio.to_thread(_executables, self._folder) if self._folder is not None else {}
        asked = (self._driver(name, path, changed_ns) for name, (path, changed_ns) in found.items())
        drivers = dict(zip(found, await asyncio.gather(*asked), strict=True))
        self._drivers = drivers
        if {name: one for name, one in drivers.items() if one.attaches} != before:
            self._changed()

    async def attach(self, name: str, options: Mapping[str, str], node: str) -> str:
        """Attach a volume; returns its device on the node, which may be empty. Raises FlexError."""
        try:
            answer = await self._call(name, "attach", _encoded(options), node)
        except Unsupported:
            return ""
        device = answer.get("device")
        return device if isinstance(device, str) else ""

    async def detach(self, name: str, volume: str, node: str) -> None:
        """Detach a volume, by its name. Raises FlexError."""
        try:
            await self._call(name, "detach", volume, node)
        except Unsupported:
            return

    async def is_attached(self, name: str, options: Mapping[str, str], node: str) -> bool:
        """Whether a volume is attached; True if the driver cannot tell. Raises FlexError."""
        try:
            answer = await self._call(name, "isattached", _encoded(options), node)
        except Unsupported:
            return True
        return answer.get("attached") is True

    async def _driver(self, name: str, path: Path, changed_ns: int) -> _Driver:
        """The driver. It is not called again if its file has not changed."""
        known = self._drivers.get(name)
        if known is not None and known.changed_ns == changed_ns:
            return known
        return _Driver(path, changed_ns, await self._init(name, path))

    async def _init(self, name: str, path: Path) -> bool:
        """Whether a driver attaches volumes. That is the default."""
        try:
            answer = await _run(path, "init")
        except FlexError as error:
            log.error("FlexVolume driver skipped", extra={"fields": {"driver": name, "err": str(error)}})
            return False
        return nested_map(answer, "capabilities").get("attach") is not False

    async def _call(self, name: str, *arguments: str) -> Doc:
        driver = self._drivers.get(name)
        if driver is None:
            raise FlexError(f"no volume plugin matched name: {name}")
        return await _run(driver.path, *arguments)


def _encoded(options: Mapping[str, str]) -> str:
    return codec.encode(dict(sorted(options.items()))).decode()


def _executables(folder: Path) -> dict[str, tuple[Path, int]]:
    """The drivers of a folder: their files and modification times. Blocks on the disk."""
    found: dict[str, tuple[Path, int]] = {}
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and not entry.name.startswith("."))
    except OSError:
        return {}
    for name in names:
        path = folder / name / name.rpartition("~")[2]
        try:
            found[name.replace("~", "/")] = path, path.stat().st_mtime_ns
        except OSError:
            continue
    return found


async def _run(path: Path, *arguments: str) -> Doc:
    """Call a driver; returns its answer. Raises FlexError."""
    command = arguments[0]
    try:
        process = await asyncio.create_subprocess_exec(
            path,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
    except OSError as error:
        raise FlexError(f"{command} command failed: {error}") from error
    try:
        async with asyncio.timeout(TIMEOUT_S):
            output, _ = await process.communicate()
    except TimeoutError:
        raise FlexError(f"{command} command timed out") from None
    finally:
        if process.returncode is None:
            await _killed(process)
    return _answer(command, output, process.returncode or 0)


async def _killed(process: asyncio.subprocess.Process) -> None:
    """Kill a driver and wait for it, but not for child processes that hold its output open."""
    try:
        process.kill()
        with suppress(TimeoutError):
            async with asyncio.timeout(_TO_END_S):
                await process.communicate()
    finally:
        # a Process has no close of its own, and its pipe would stay open as long as such a child process lives
        process._transport.close()  # type: ignore[attr-defined]


def _answer(command: str, output: bytes, code: int) -> Doc:
    """Parse a driver's output. Keys are case-insensitive, as in Go's decoder."""
    try:
        doc = codec.decode_doc(output)
    except codec.DecodeError as error:
        raise FlexError(f"{command} command failed: {error}") from error
    answer: Doc = {key.lower(): value for key, value in doc.items()}
    status = answer.get("status")
    if status == "Not supported":
        raise Unsupported("Not supported")
    if status != "Success":
        raise FlexError(f"{command} command failed, status: {status}, reason: {answer.get('message', '')}")
    if code:
        raise FlexError(f"exit status {code}")
    return answer
