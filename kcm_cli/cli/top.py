"""``kcm top``: a live view of a controller manager, kcm or kube-controller-manager."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence

import msgspec
from rich.console import Console

from kcm_cli.cli import manager_access, usage
from kcm_cli.cli.keyboard import keys
from kcm_cli.cli.manager_access import ManagerAccess
from kcm_cli.cli.terminal import Region, is_capable
from kcm_cli.component.clock import RealClock
from kcm_cli.component.flagset import Flag, FlagSet, Parsed, unexpected
from kcm_cli.component.value_types import BOOL, DURATION, STRING
from kcm_cli.manager.controller_map import queue_owners
from kcm_cli.rest.manager_port import ReadError
from kcm_cli.top import table
from kcm_cli.top.figures import between
from kcm_cli.top.source import Reading, Source
from kcm_cli.top.table import Look, Shown

_OUTPUT = "Output"
_LOOK_S = 0.5
"""How often a view in the background looks whether it is in the foreground again."""
FLAGS = FlagSet(
    (
        *manager_access.FLAGS,
        Flag(
            "lease",
            STRING,
            "kube-system/kube-controller-manager",
            "Lease to show: NAMESPACE/NAME.",
            manager_access.SECTION,
        ),
        Flag("interval", DURATION, 2.0, "Time between two readings.", _OUTPUT),
        Flag("once", BOOL, False, "Print one view, of one interval, and exit.", _OUTPUT),
        Flag("output", STRING, "text", "Format with --once: text or json.", _OUTPUT, "o", choices=("text", "json")),
        Flag("sort", STRING, "rate", f"Sort by one of {', '.join(table.SORTS)}.", _OUTPUT, choices=table.SORTS),
        Flag("filter", STRING, "", "Show queues and controllers whose names contain this.", _OUTPUT),
        Flag("all", BOOL, False, "Show also queues that have had no work.", _OUTPUT),
        Flag("help", BOOL, False, "Show this text.", _OUTPUT, "h"),
    )
)
ABOUT = """kcm top shows what a controller manager does: queues, retries, writes, lease and health.
It reads /metrics and /healthz of kcm or of kube-controller-manager.

Usage:
  kcm top [--server URL] [--kubeconfig FILE | --token TOKEN]
  kcm top --once -o json"""


class Command(msgspec.Struct, frozen=True):
    """The parsed command line."""

    access: ManagerAccess
    lease: tuple[str, str]
    interval_s: float
    once: bool
    as_json: bool
    look: Look


def main(arguments: Sequence[str]) -> int:
    """Show the view; returns the exit code."""
    return manager_access.run(arguments, FLAGS, ABOUT, _read, _run, is_endless=lambda command: not command.once)


def _read(parsed: Parsed, problems: list[str]) -> Command | None:
    values = FLAGS.values_of(parsed)
    interval_s, to = values["interval"], manager_access.of(values, problems)
    problems += unexpected(parsed, "kcm top")
    namespace, slash, name = str(values["lease"]).partition("/")
    if not slash or not namespace or not name or "/" in name:
        problems.append(f"--lease: {values['lease']} is not NAMESPACE/NAME")
    if not isinstance(interval_s, float) or interval_s < 0.1:
        problems.append("--interval: must be at least 100ms")
    if values["output"] != "text" and not values["once"]:
        problems.append("--output: json is printed with --once")
    problems += manager_access.outside_of_choices(FLAGS, values)
    if problems or to is None:
        return None
    assert isinstance(interval_s, float)
    return Command(
        to,
        (namespace, name),
        interval_s,
        bool(values["once"]),
        values["output"] == "json",
        Look(str(values["sort"]), filter=str(values["filter"]), every=bool(values["all"])),
    )


@contextlib.asynccontextmanager
async def _source(command: Command) -> AsyncIterator[Source]:
    clock = RealClock()
    async with manager_access.opened(command.access, clock, "top") as (transport, client):
        leases = None if client is None else (client, *command.lease)
        yield Source(transport, command.access.server, monotonic=clock.monotonic, now=clock.now, leases=leases)


async def _run(command: Command) -> int:
    async with _source(command) as source:
        before = await source.read()
        await asyncio.sleep(command.interval_s if not command.once else min(command.interval_s, 1.0))
        now = await source.read()
        if command.once:
            _print(command, before, now)
        elif not is_capable(sys.stdout):
            raise ReadError("standard output is no terminal that can be drawn on: add --once")
        else:
            await _follow(command, source, before, now)
    return 0


def _shown(before: Reading, now: Reading) -> Shown:
    view = between(before.figures, now.figures, queue_owners(), RealClock().now().timestamp())
    return Shown(view, now.held, now.unhealthy)


def _print(command: Command, before: Reading, now: Reading) -> None:
    shown, look = _shown(before, now), command.look
    if command.as_json:
        sys.stdout.write(json.dumps(table.document(shown, look), indent=2) + "\n")
        return
    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False, width=usage.width())
    console.print(table.printed(shown, look, usage.width()))


async def _follow(command: Command, source: Source, before: Reading, now: Reading) -> None:
    """Draw until q or Ctrl-C, or until the terminal is gone. Ctrl-Z restores the terminal; the view comes back with the
    foreground. A reading that fails is reported, and the last one stays."""
    region, showing, loop = Region(sys.stdout), _Showing(command, source, before, now), asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTSTP, showing.suspend)
    try:
        while not showing.ended:
            if showing.suspended:
                showing.suspended = False
                os.kill(os.getpid(), signal.SIGSTOP)
                continue
            if not region.is_ours:
                await asyncio.sleep(_LOOK_S)
                continue
            region.open()
            try:
                with keys(showing.press):
                    await showing.show(region)
            finally:
                region.close()
    finally:
        loop.remove_signal_handler(signal.SIGTSTP)


class _Showing:
    """The live view of a manager. ended: by a key, or since the terminal is gone. suspended: by Ctrl-Z."""

    def __init__(self, command: Command, source: Source, before: Reading, now: Reading) -> None:
        self.ended = self.suspended = False
        self._look, self._interval_s = command.look, command.interval_s
        self._source, self._before, self._now = source, before, now
        self._changed = asyncio.Event()

    def press(self, key: str) -> None:
        self.ended = pressed(self._look, key) or self.ended
        self._changed.set()

    def suspend(self) -> None:
        self.suspended = True
        self._changed.set()

    async def show(self, region: Region) -> None:
        """Draw in an open region, until the view ends or is suspended."""
        while not (self.ended or self.suspended):
            width, height = region.console.size
            region.draw(table.render(_shown(self._before, self._now), self._look, width, height - 1))
            if not region.is_open:  # the terminal is gone
                self.ended = True
                return
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._interval_s):
                    await self._changed.wait()
                continue  # a key: the same figures are drawn anew
            if not self._look.paused:
                await self._read()

    async def _read(self) -> None:
        try:
            following = await self._source.read()
        except ReadError as error:
            self._look.problem = str(error)
            return
        self._look.problem, self._before, self._now = "", self._now, following


def pressed(look: Look, key: str) -> bool:
    """Change the view by a key. Returns whether it ends."""
    if look.typing:
        _typed(look, key)
        return False
    match key:
        case "q":
            return True
        case "s":
            look.sort = table.SORTS[(table.SORTS.index(look.sort) + 1) % len(table.SORTS)]
        case "r":
            look.reverse = not look.reverse
        case "a":
            look.every = not look.every
        case "p" | " ":
            look.paused = not look.paused
        case "h" | "?":
            look.help = not look.help
        case "/":
            look.typing, look.filter, look.help = True, "", False
    return False


def _typed(look: Look, key: str) -> None:
    if key in "\r\n":
        look.typing = False
    elif key == "\x1b":
        look.typing, look.filter = False, ""
    elif key in "\x7f\b":
        look.filter = look.filter[:-1]
    elif key.isprintable():
        look.filter += key
