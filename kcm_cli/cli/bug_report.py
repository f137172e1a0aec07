"""``kcm bug-report``: what there is to know about a manager that misbehaves, in one JSON file without secrets."""

import asyncio
import platform
import sys
from collections.abc import Sequence

import msgspec

from kcm_cli.cli import manager_access
from kcm_cli.cli.manager_access import ManagerAccess
from kcm_cli.cli.redaction import redacted, redacted_lines
from kcm_cli.component.clock import RealClock
from kcm_cli.component.flagset import Flag, FlagSet, Parsed, unexpected
from kcm_cli.component.value_types import BOOL
from kcm_cli.component.version import GIT_VERSION
from kcm_cli.machinery import codec
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.times import format_time
from kcm_cli.manager.controller_map import queue_owners
from kcm_cli.rest.manager_port import ManagerPort, ReadError, TooLarge
from kcm_cli.runtime.cause_ring import Later, Wrote
from kcm_cli.top import figures
from kcm_cli.trace.join import Target, trace
from kcm_cli.trace.source import Source
from kcm_cli.trace.text import head, plain

PAUSE_S = 2.0
"""Between two readings of the figures, of which rates are made."""
_MOST_BYTES = 64 << 20
_MOST_ERRORS, _MOST_TRACES = 200, 10
FLAGS = FlagSet((*manager_access.FLAGS, Flag("help", BOOL, False, "Show this text.", "Output", "h")))
ABOUT = """kcm bug-report writes what there is to know about a running manager to standard output, as one JSON
document: versions, flags, configuration, health, metrics, queues, longest turns, the last errors, and traces of what
was refused. It has names of objects, and no values of Secrets. A part that the manager does not have is named in
problems: it also works with kube-controller-manager.

Usage:
  kcm bug-report [--kubeconfig FILE] [--server https://127.0.0.1:10257] > report.json"""


def main(arguments: Sequence[str]) -> int:
    """Write the report; returns the exit code."""
    return manager_access.run(arguments, FLAGS, ABOUT, _read, _run)


def _read(parsed: Parsed, problems: list[str]) -> ManagerAccess | None:
    values = FLAGS.values_of(parsed)
    problems += unexpected(parsed, "kcm bug-report")
    return manager_access.of(values, problems)


async def _run(access: ManagerAccess) -> int:
    clock = RealClock()
    async with manager_access.opened(access, clock, "bug-report") as (transport, _):
        report = await gather(ManagerPort(transport, access.server), clock)
    sys.stdout.write(msgspec.json.format(codec.encode(report), indent=2).decode() + "\n")
    return 0


async def gather(port: ManagerPort, clock: RealClock) -> dict[str, object]:
    """The report. Raises ReadError for a manager that answers nothing."""
    problems: dict[str, str] = {}

    async def text(path: str, query: tuple[tuple[str, str], ...] = ()) -> str:
        try:
            return (await port.read(path, query, most_bytes=_MOST_BYTES)).decode(errors="replace")
        except ReadError as error:
            problems[path] = str(error)
            return ""

    health = b""
    try:
        health = (await port.get("/healthz", (("verbose", ""),), most_bytes=_MOST_BYTES)).body
    except TooLarge as error:
        problems["/healthz"] = str(error)
    before, at = await text("/metrics"), clock.monotonic()
    await asyncio.sleep(PAUSE_S)
    metrics, now = await text("/metrics"), clock.monotonic()
    report: dict[str, object] = {
        "kind": "BugReport",
        "takenAt": format_time(clock.now()),
        "kcm": {"version": GIT_VERSION, "python": platform.python_version(), "platform": platform.platform()},
        "health": [plain(line) for line in health.decode(errors="replace").splitlines()],
        "status": (await text("/statusz")).splitlines(),
        "flags": redacted_lines(await text("/flagz")),
        "configuration": _configuration(await text("/configz"), problems),
    }
    try:
        view = figures.between(
            figures.read(before, at), figures.read(metrics, now), queue_owners(), clock.now().timestamp()
        )
        turns = {row.controller: row.longest_s for row in view.rows if row.longest_s}
        manager = msgspec.to_builtins(view)
        report["queues"] = manager.pop("rows")
        report["manager"] = manager
        report["longestTurns"] = dict(sorted(turns.items(), key=lambda pair: -pair[1]))
    except FormatError as error:
        problems.setdefault("/metrics", str(error))
    report |= await _last(port, problems)
    report |= {"problems": problems, "metrics": metrics.splitlines()}
    return {name: redacted(part) for name, part in report.items()}


async def _last(port: ManagerPort, problems: dict[str, str]) -> dict[str, object]:
    """The last errors, and traces of what was refused last."""
    source = Source(port)
    try:
        await source.read()
    except ReadError as error:
        problems["/debug/causes"] = str(error)
        return {"errors": [], "traces": []}
    refused = [one for one in source.entries if isinstance(one, Wrote) and not 200 <= one.code < 300]
    failed = [one for one in source.entries if isinstance(one, Later) and one.error]
    errors: list[Wrote | Later] = [*refused, *failed]
    errors.sort(key=lambda one: one.at)
    targets: dict[tuple[str, str], Target] = {}
    for one in reversed(refused):
        kind, _, key = one.owner.partition(" ") if one.owner else (one.kind or one.resource, "", one.key)
        namespace, _, name = key.rpartition("/")
        if name and len(targets) < _MOST_TRACES:
            targets.setdefault((kind, key), Target(kind, namespace, name))
    traces = [head(trace(source.entries, target, forgotten=source.forgotten)) for target in targets.values()]
    return {"errors": [_error(one) for one in errors[-_MOST_ERRORS:]], "traces": traces}


def _error(one: Wrote | Later) -> dict[str, object]:
    return {"type": "write" if isinstance(one, Wrote) else "sync", **msgspec.structs.asdict(one)}


def _configuration(body: str, problems: dict[str, str]) -> object:
    if not body:
        return None
    try:
        return codec.decode_doc(body.encode())
    except codec.DecodeError as error:
        problems["/configz"] = f"it cannot be read: {error}"
        return None
