"""``kcm trace``: why something happened, and what followed from it."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Sequence

import msgspec

from kcm_cli.cli import manager_access
from kcm_cli.cli.manager_access import ManagerAccess
from kcm_cli.component.clock import RealClock
from kcm_cli.component.flagset import Flag, FlagSet, Parsed
from kcm_cli.component.value_types import BOOL, DURATION, STRING, STRINGS
from kcm_cli.machinery import codec
from kcm_cli.report.page import TRACE, page
from kcm_cli.rest.client import Client
from kcm_cli.rest.manager_port import ManagerPort, ReadError
from kcm_cli.rest.transport import RequestError
from kcm_cli.sandbox import kubeconfig
from kcm_cli.trace import text
from kcm_cli.trace.audit import AuditLog, read_files
from kcm_cli.trace.join import Target, Trace
from kcm_cli.trace.observer import Observer, Wanted, resolve, unresolved
from kcm_cli.trace.source import Source
from kcm_cli.trace.sources import Sources

_OBJECT, _SOURCE, _OUTPUT = "Object", "Source", "Output"
_PAUSE_S = 1.0
FLAGS = FlagSet(
    (
        Flag(
            "namespace",
            STRING,
            "",
            "Namespace of the object. Default: that of the kubeconfig's context, or default.",
            _OBJECT,
            "n",
        ),
        Flag("since", DURATION, 600.0, "How far back to look.", _OBJECT),
        Flag(
            "observe",
            BOOL,
            False,
            "Ask no manager, unless --server is given: list what the cluster has. For any manager; only reads.",
            _SOURCE,
        ),
        Flag("for", DURATION, 0.0, "With --observe: watch for so long, then show the trace.", _SOURCE),
        Flag(
            "audit-log",
            STRINGS,
            (),
            "Files of an API server's audit log (JSON, plain or gzip), or - for standard input. Asks nobody, unless "
            "--observe or --server is given, too.",
            _SOURCE,
        ),
        *manager_access.FLAGS,
        Flag("follow", BOOL, False, "Go on with what happens from now on, until Ctrl-C.", _OUTPUT, "f"),
        Flag("output", STRING, "text", "Format: text, json or html.", _OUTPUT, "o", choices=("text", "json", "html")),
        Flag("help", BOOL, False, "Show this text.", _OUTPUT, "h"),
    )
)
ABOUT = """kcm trace shows why something happened to an object, who did it, and what followed.
It asks a running kcm (also one of kcm sandbox), which keeps the causes of what it did; or it observes a cluster with
any manager; or it reads an API server's audit log.

Usage:
  kcm trace KIND/NAME [-n NAMESPACE] [--since 10m] [--follow] [-o text|json|html]
  kcm trace KIND/NAME --observe [--for 5m | --follow]
  kcm trace KIND/NAME --audit-log FILE [--since 24h]"""


class Command(msgspec.Struct, frozen=True):
    """The parsed command line. access: of the manager; None if it is not asked."""

    target: Target
    since_s: float
    follow: bool
    output: str
    access: ManagerAccess | None
    kubeconfig: str
    observe: bool
    for_s: float
    audit_logs: tuple[str, ...]


def main(arguments: Sequence[str]) -> int:
    """Show the trace; returns the exit code."""
    return manager_access.run(arguments, FLAGS, ABOUT, _read, _run, is_endless=lambda command: command.follow)


def _read(parsed: Parsed, problems: list[str]) -> Command | None:
    values = FLAGS.values_of(parsed)
    words, since_s, for_s = list(parsed.rest), values["since"], values["for"]
    kind, slash, name = (words[0] if words else "").partition("/")
    if len(words) != 1:
        problems.append("name one object as KIND/NAME, such as deploy/web")
    elif not (kind and slash and name) or "/" in name:
        problems.append(f"{words[0]} is not KIND/NAME, such as deploy/web")
    if not isinstance(since_s, float) or since_s <= 0:
        problems.append("--since: must be a duration above 0, such as 10m")
    observe, logs, follow = bool(values["observe"]), values["audit-log"], bool(values["follow"])
    assert isinstance(logs, tuple | list)
    if not isinstance(for_s, float) or for_s < 0 or (for_s and not observe):
        problems.append("--for: must be a duration such as 5m, and goes with --observe")
    if follow and values["output"] == "html":
        problems.append("--follow: it has no end, and a page has one; --observe --for 5m -o html has")
    if follow and for_s:
        problems.append("--follow: it has no end, so --for has no meaning")
    asks_manager = "server" in parsed.values or not (logs or observe)
    if observe and asks_manager and not values["kubeconfig"]:
        problems.append("--kubeconfig: name the cluster that is observed beside the manager of --server")
    if follow and logs and not (observe or asks_manager):
        problems.append("--follow: a log is read once; follow with --observe")
    access = manager_access.of(values, problems) if asks_manager else None
    problems += manager_access.outside_of_choices(FLAGS, values)
    if problems:
        return None
    assert isinstance(since_s, float) and isinstance(for_s, float)
    path, problem = kubeconfig.of_cluster(str(values["kubeconfig"])) if observe else ("", "")
    problems += [problem] if problem else []
    kube = path or str(values["kubeconfig"])
    usual = manager_access.namespace_of(kube) if kube or observe else ""
    return Command(
        Target(kind, str(values["namespace"]) or usual or "default", name),
        since_s,
        follow,
        str(values["output"]),
        access,
        path,
        observe,
        for_s,
        tuple(str(one) for one in logs),
    )


async def _run(command: Command) -> int:
    clock = RealClock()
    async with _connected(command, clock) as (port, client):
        wanted = await _resolved(client, command) if client is not None else unresolved(command.target)
        sources = Sources(wanted.target, command.since_s, clock)
        if command.audit_logs:
            sources.log = AuditLog(wanted.target, sources.history)
            read_files(command.audit_logs, sources.log)
        if client is not None:
            sources.observer = Observer(client, clock, wanted, sources.history)
        if port is not None:
            sources.ring = Source(port)
            await _ask(sources)
        async with sources.observing(follow=command.follow or command.for_s > 0):
            if command.for_s:
                await asyncio.sleep(command.for_s)
            found = sources.trace()
            _print(command, sources, found)
            if command.follow:
                shown = set[tuple[object, ...]]()
                list(text.new_lines(found, shown))
                await _follow(command, sources, shown)
    return 0


async def _resolved(client: Client, command: Command) -> Wanted:
    """The target by the kinds of the cluster. Where a manager is asked, the cluster may be out of reach."""
    try:
        return await resolve(client, command.target)
    except RequestError as error:
        if command.access is None:
            raise ReadError(f"the cluster cannot be read: {error}") from error
        return unresolved(command.target)


@contextlib.asynccontextmanager
async def _connected(command: Command, clock: RealClock) -> AsyncIterator[tuple[ManagerPort | None, Client | None]]:
    """The manager's port and the cluster, as far as they are read."""
    if command.access is not None:
        async with manager_access.opened(command.access, clock, "trace") as (transport, client):
            yield ManagerPort(transport, command.access.server), client
    elif command.observe:
        async with manager_access.cluster(command.kubeconfig, clock, "trace") as client:
            yield None, client
    else:
        yield None, None


async def _ask(sources: Sources) -> None:
    """Read the manager. One that has no causes, as kube-controller-manager, is not needed where there is a cluster."""
    assert sources.ring is not None
    try:
        await sources.ring.read()
    except ReadError as error:
        if sources.observer is None:
            raise
        sources.ring = None
        sys.stderr.write(f"{error}\nThe cluster is observed instead, as with --observe.\n")


def _print(command: Command, sources: Sources, found: Trace) -> None:
    if command.output != "text":
        document = text.document(found, sources.notes(), **sources.recorded())
    if command.output == "html":
        sys.stdout.write(page(TRACE, f"Trace of {found.target.text}", {**document, "legend": text.LEGEND}))
    elif command.output == "json":
        body = codec.encode(document)
        sys.stdout.write((body if command.follow else msgspec.json.format(body, indent=2)).decode() + "\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in text.lines(found, sources.notes()))


async def _follow(command: Command, sources: Sources, shown: set[tuple[object, ...]]) -> None:
    """Print what is new, a line each, until interrupted. A manager that does not answer is asked again."""
    down = False
    while True:
        sys.stdout.flush()
        await asyncio.sleep(_PAUSE_S)
        if sources.ring is not None:
            try:
                other = await sources.ring.read()
            except ReadError as error:
                if not down:
                    sys.stderr.write(f"{error}\n")
                down = True
                continue
            down = False
            if other:
                shown.clear()
                sys.stderr.write("Another manager answers: what caused its first syncs is unknown.\n")
        for line in text.new_lines(sources.trace(), shown):
            sys.stdout.write((codec.encode({"text": line}).decode() if command.output == "json" else line) + "\n")
