"""``kcm top``: a live view of a controller manager, kcm or kube-controller-manager."""

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from rich.console import Console

from kcm_cli.cli import usage
from kcm_cli.cli.keyboard import keys
from kcm_cli.cli.manager import fail
from kcm_cli.cli.terminal import Region, is_capable
from kcm_cli.component.clock import LoopClock, RealClock
from kcm_cli.component.flagset import Flag, FlagSet, Parsed
from kcm_cli.component.kinds import BOOL, DURATION, STRING
from kcm_cli.component.version import GIT_VERSION
from kcm_cli.manager.controller_map import queue_owners
from kcm_cli.rest import access
from kcm_cli.rest.access import Access
from kcm_cli.rest.authorized import Authorized
from kcm_cli.rest.client import Client
from kcm_cli.rest.credentials import ANONYMOUS, Credentials, Fixed, bearer
from kcm_cli.rest.errors import AccessError, TLSFilesError
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.rest.session import Session
from kcm_cli.rest.tls import TLSFiles
from kcm_cli.top import table
from kcm_cli.top.figures import between
from kcm_cli.top.source import ReadError, Reading, Source
from kcm_cli.top.table import Look, Shown

ADDRESS = "https://127.0.0.1:10257"
_LOCAL = ("127.0.0.1", "::1", "localhost")
_MANAGER, _OUTPUT = "Manager", "Output"
FLAGS = FlagSet(
    (
        Flag("server", STRING, ADDRESS, "Address of the manager's secure port.", _MANAGER),
        Flag(
            "kubeconfig",
            STRING,
            "",
            "kubeconfig with the credentials for the manager; its cluster's lease is shown, too.",
            _MANAGER,
        ),
        Flag("token", STRING, "", "Bearer token for the manager.", _MANAGER),
        Flag("token-file", STRING, "", "File with the bearer token.", _MANAGER),
        Flag("certificate-authority", STRING, "", "CA certificates of the manager's port.", _MANAGER),
        Flag(
            "insecure-skip-tls-verify",
            BOOL,
            False,
            "Accept any certificate of the manager. On this machine's own addresses it is accepted without a CA.",
            _MANAGER,
        ),
        Flag("lease", STRING, "kube-system/kube-controller-manager", "Lease to show: NAMESPACE/NAME.", _MANAGER),
        Flag("interval", DURATION, 2.0, "Time between two readings.", _OUTPUT),
        Flag("once", BOOL, False, "Print one view, of one interval, and exit.", _OUTPUT),
        Flag("output", STRING, "text", "Format with --once: text or json.", _OUTPUT, "o", choices=("text", "json")),
        Flag("sort", STRING, "rate", f"Sort by one of {', '.join(table.SORTS)}.", _OUTPUT, choices=table.SORTS),
        Flag("filter", STRING, "", "Show queues and controllers whose names contain this.", _OUTPUT),
        Flag("all", BOOL, False, "Show also queues that have had no work.", _OUTPUT),
        Flag("help", BOOL, False, "Show this text.", _OUTPUT, "h"),
    )
)
_ABOUT = """kcm top shows what a controller manager does: queues, retries, writes, lease and health.
It reads /metrics and /healthz of kcm or of kube-controller-manager.

Usage:
  kcm top [--server URL] [--kubeconfig FILE | --token TOKEN]
  kcm top --once -o json"""


class Command(msgspec.Struct, frozen=True):
    """The parsed command line. ``tls``: how the manager is trusted."""

    server: str
    kubeconfig: str
    token: str
    tls: TLSFiles
    lease: tuple[str, str]
    interval_s: float
    once: bool
    as_json: bool
    look: Look


def main(arguments: Sequence[str]) -> int:
    """Show the view; returns the exit code."""
    parsed = FLAGS.parse(list(arguments))
    if parsed.values.get("help") and not parsed.problems:
        sys.stdout.write(usage.help_text(_ABOUT, FLAGS))
        return 0
    problems = [*parsed.problems, *(f"unexpected argument: {word}" for word in parsed.rest)]
    command = _read(parsed, problems)
    if problems or command is None:
        return fail(problems)
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # the terminal is restored
    try:
        return asyncio.run(_run(command))
    except (ReadError, AccessError, TLSFilesError) as error:
        return fail([str(error)])
    except KeyboardInterrupt:
        return 0


def completion(arguments: Sequence[str]) -> tuple[FlagSet, tuple[str, ...]]:
    """The flags and words that may come next."""
    return FLAGS, ()


def _read(parsed: Parsed, problems: list[str]) -> Command | None:
    values = {flag.name: parsed.values.get(flag.name, flag.default) for flag in FLAGS}
    server, interval_s = str(values["server"]), values["interval"]
    host = _host(server)
    namespace, slash, name = str(values["lease"]).partition("/")
    if not host:
        problems.append(f"--server: {server} is no address such as {ADDRESS}")
    if not slash or not namespace or not name or "/" in name:
        problems.append(f"--lease: {values['lease']} is not NAMESPACE/NAME")
    if not isinstance(interval_s, float) or interval_s < 0.1:
        problems.append("--interval: must be at least 100ms")
    if values["output"] != "text" and not values["once"]:
        problems.append("--output: json is printed with --once")
    problems += _of_choices(values)
    token = str(values["token"])
    if values["token-file"]:
        if token:
            problems.append("--token-file: it takes the place of --token")
        try:
            token = Path(str(values["token-file"])).read_text("ascii").strip()
        except (OSError, ValueError) as error:
            problems.append(f"--token-file: cannot read {values['token-file']}: {error}")
    authority = str(values["certificate-authority"])
    insecure = bool(values["insecure-skip-tls-verify"]) or (not authority and host in _LOCAL)
    if not insecure and not authority:
        problems.append("--certificate-authority: needed for another machine (or --insecure-skip-tls-verify)")
    if problems:
        return None
    assert isinstance(interval_s, float)
    return Command(
        server.rstrip("/"),
        str(values["kubeconfig"]),
        token,
        TLSFiles(ca_file=Path(authority) if authority else None, insecure=insecure),
        (namespace, name),
        interval_s,
        bool(values["once"]),
        values["output"] == "json",
        Look(str(values["sort"]), filter=str(values["filter"]), every=bool(values["all"])),
    )


def _host(server: str) -> str:
    """The host of an address; empty if it is none."""
    try:
        parts = urlsplit(server)
        valid = parts.scheme == "https" and parts.port != 0
    except ValueError:
        return ""
    return parts.hostname or "" if valid else ""


def _of_choices(values: Mapping[str, object]) -> Iterator[str]:
    for flag in FLAGS:
        if flag.choices and values[flag.name] not in flag.choices:
            yield f"--{flag.name}: {values[flag.name]} is none of {', '.join(flag.choices)}"


@contextlib.asynccontextmanager
async def _source(command: Command) -> AsyncIterator[Source]:
    clock = RealClock()
    credentials: Credentials = Fixed(bearer(command.token)) if command.token else ANONYMOUS
    tls, leases = command.tls, None
    async with contextlib.AsyncExitStack() as stack:
        if command.kubeconfig:
            found = await access.load(path=command.kubeconfig, master="", clock=LoopClock())
            agent = f"kcm/{GIT_VERSION} (linux/amd64) kubernetes/top"
            session = Authorized(Session(found, clock), found.credentials)
            client = Client(session, limiter=Unlimited(), user_agent=agent, clock=clock)
            stack.push_async_callback(client.close)
            leases = (client, *command.lease)
            if not command.token:
                credentials = found.credentials
                tls = _with_certificate(tls, found)
        manager = Access(command.server, tls, credentials=credentials)
        transport = Authorized(Session(manager, clock), credentials)
        stack.push_async_callback(transport.close)
        yield Source(transport, command.server, monotonic=clock.monotonic, now=clock.now, leases=leases)


def _with_certificate(tls: TLSFiles, found: Access) -> TLSFiles:
    """With the client certificate of a kubeconfig."""
    if found.tls is None:
        return tls
    theirs = found.tls
    return TLSFiles(
        tls.ca_file,
        tls.ca_data,
        theirs.cert_file,
        theirs.cert_data,
        theirs.key_file,
        theirs.key_data,
        insecure=tls.insecure,
    )


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
    """Draw until q or Ctrl-C. A reading that fails is reported, and the last one stays."""
    look, ended, changed = command.look, asyncio.Event(), asyncio.Event()
    region = Region(sys.stdout)

    def press(key: str) -> None:
        if pressed(look, key):
            ended.set()
        changed.set()

    region.open()
    try:
        with keys(press):
            while not ended.is_set():
                width, height = region.console.size
                region.draw(table.render(_shown(before, now), look, width, height - 1))
                changed.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), command.interval_s)
                    continue  # a key: the same figures are drawn anew
                if not look.paused:
                    before, now = await _next(source, before, now, look)
    finally:
        region.close()


async def _next(source: Source, before: Reading, now: Reading, look: Look) -> tuple[Reading, Reading]:
    """The last two readings."""
    try:
        following = await source.read()
    except ReadError as error:
        look.problem = str(error)
        return before, now
    look.problem = ""
    return now, following


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
