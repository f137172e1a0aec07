"""``kcm trace``: why something happened, and what followed from it."""

import asyncio
import json
import sys
from collections.abc import Sequence

import msgspec

from kcm_cli.cli import manager_access
from kcm_cli.cli.manager_access import ManagerAccess
from kcm_cli.component.clock import RealClock
from kcm_cli.component.flagset import Flag, FlagSet, Parsed
from kcm_cli.component.kinds import BOOL, DURATION, STRING
from kcm_cli.rest.manager_port import ManagerPort, ReadError
from kcm_cli.trace import text
from kcm_cli.trace.join import Target, Trace, trace
from kcm_cli.trace.source import Source

_OBJECT, _OUTPUT = "Object", "Output"
_PAUSE_S = 1.0
FLAGS = FlagSet(
    (
        Flag("namespace", STRING, "default", "Namespace of the object.", _OBJECT, "n"),
        Flag("since", DURATION, 600.0, "How far back to look.", _OBJECT),
        Flag("follow", BOOL, False, "Go on with what happens from now on, until Ctrl-C.", _OUTPUT, "f"),
        Flag("output", STRING, "text", "Format: text or json.", _OUTPUT, "o", choices=("text", "json")),
        *manager_access.FLAGS,
        Flag("help", BOOL, False, "Show this text.", _OUTPUT, "h"),
    )
)
_ABOUT = """kcm trace shows why something happened to an object, who did it, and what followed.
It reads /debug/causes of a running kcm (also one of kcm sandbox), which keeps the last 4 MiB of causes.

Usage:
  kcm trace KIND/NAME [-n NAMESPACE] [--since 10m] [--follow] [-o text|json]"""


class Command(msgspec.Struct, frozen=True):
    """The parsed command line."""

    target: Target
    since_s: float
    follow: bool
    as_json: bool
    access: ManagerAccess


def main(arguments: Sequence[str]) -> int:
    """Show the trace; returns the exit code."""
    return manager_access.run(arguments, FLAGS, _ABOUT, _read, _run)


def completion(arguments: Sequence[str]) -> tuple[FlagSet, tuple[str, ...]]:
    """The flags and words that may come next."""
    return FLAGS, ()


def _read(parsed: Parsed, problems: list[str]) -> Command | None:
    values = {flag.name: parsed.values.get(flag.name, flag.default) for flag in FLAGS}
    words, since_s = list(parsed.rest), values["since"]
    kind, slash, name = (words[0] if words else "").partition("/")
    if len(words) != 1:
        problems.append("name one object as KIND/NAME, such as deploy/web")
    elif not (kind and slash and name) or "/" in name:
        problems.append(f"{words[0]} is not KIND/NAME, such as deploy/web")
    if not isinstance(since_s, float) or since_s <= 0:
        problems.append("--since: must be a duration above 0, such as 10m")
    access = manager_access.of(values, problems)
    problems += manager_access.outside_of_choices(FLAGS, values)
    if problems or access is None:
        return None
    assert isinstance(since_s, float)
    target = Target(kind, str(values["namespace"]), name)
    return Command(target, since_s, bool(values["follow"]), values["output"] == "json", access)


async def _run(command: Command) -> int:
    clock = RealClock()
    async with manager_access.opened(command.access, clock, "trace") as (transport, _):
        source = Source(ManagerPort(transport, command.access.server))
        await source.read()
        found = _found(command, source, source.now - command.since_s)
        if command.as_json:
            indent = None if command.follow else 2
            sys.stdout.write(json.dumps(text.document(found, source.forgotten, source.started), indent=indent) + "\n")
        else:
            sys.stdout.writelines(f"{line}\n" for line in text.lines(found, source.forgotten, source.started))
        if command.follow:
            await _follow(command, source, found)
    return 0


def _found(command: Command, source: Source, earliest: float) -> Trace:
    return trace(source.entries, command.target, forgotten=source.forgotten, earliest=earliest)


async def _follow(command: Command, source: Source, found: Trace) -> None:
    """Print what is new, a line each, until interrupted. A manager that does not answer is asked again."""
    shown, down = set[tuple[object, ...]](), False
    list(text.new_lines(found, shown))
    earliest = source.now - command.since_s
    while True:
        sys.stdout.flush()
        await asyncio.sleep(_PAUSE_S)
        try:
            other = await source.read()
        except ReadError as error:
            if not down:
                sys.stderr.write(f"{error}\n")
            down = True
            continue
        down = False
        if other:
            shown.clear()
            sys.stderr.write("Another manager answers: what caused its first syncs is unknown.\n")
        for line in text.new_lines(_found(command, source, earliest), shown):
            sys.stdout.write((json.dumps({"text": line}) if command.as_json else line) + "\n")
