"""How a command reaches a manager's secure port: flags, credentials and the connection."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec

from kcm_cli.cli import usage
from kcm_cli.cli.manager import fail
from kcm_cli.component.clock import LoopClock, RealClock
from kcm_cli.component.flagset import Flag, FlagSet, Parsed, not_utf8
from kcm_cli.component.value_types import BOOL, STRING
from kcm_cli.machinery.errors import FormatError
from kcm_cli.rest import access
from kcm_cli.rest import kubeconfig as kubeconfigs
from kcm_cli.rest.access import Access
from kcm_cli.rest.authorized import Authorized
from kcm_cli.rest.client import Client
from kcm_cli.rest.command_client import client_of
from kcm_cli.rest.credentials import ANONYMOUS, Fixed, bearer
from kcm_cli.rest.errors import AccessError, TLSFilesError
from kcm_cli.rest.manager_port import ReadError
from kcm_cli.rest.session import Session
from kcm_cli.rest.tls import TLSFiles
from kcm_cli.rest.transport import Transport

C = TypeVar("C")

ADDRESS = "https://127.0.0.1:10257"
_LOCAL = ("127.0.0.1", "::1", "localhost")
SECTION = "Manager"
FLAGS = (
    Flag("server", STRING, ADDRESS, "Address of the manager's secure port.", SECTION),
    Flag(
        "kubeconfig",
        STRING,
        "",
        "kubeconfig with the credentials for the manager; kcm top shows its cluster's lease, too.",
        SECTION,
    ),
    Flag("token", STRING, "", "Bearer token for the manager.", SECTION),
    Flag("token-file", STRING, "", "File with the bearer token.", SECTION),
    Flag("certificate-authority", STRING, "", "CA certificates of the manager's port.", SECTION),
    Flag(
        "insecure-skip-tls-verify",
        BOOL,
        False,
        "Accept any certificate of the manager: credentials go to whoever answers there.",
        SECTION,
    ),
)

PATHS = frozenset(("kubeconfig", "token-file", "certificate-authority", "audit-log"))
"""The flags that name files, of all commands that read a manager."""


class ManagerAccess(msgspec.Struct, frozen=True):
    """The address of a manager and the credentials for it. ``tls``: how it is trusted."""

    server: str
    kubeconfig: str
    token: str
    tls: TLSFiles


def of(values: Mapping[str, object], problems: list[str]) -> ManagerAccess | None:
    """Read the flags; None where there are problems, which are added."""
    before, server = len(problems), str(values["server"])
    host = _host(server)
    if not host:
        problems.append(f"--server: {server} is no address such as {ADDRESS}")
    token = str(values["token"])
    if values["token-file"]:
        if token:
            problems.append("--token-file: it takes the place of --token")
        try:
            token = Path(str(values["token-file"])).read_text("ascii").strip()
        except OSError as error:
            problems.append(f"--token-file: cannot read {values['token-file']}: {error.strerror}")
        except ValueError:
            problems.append(f"--token-file: {values['token-file']} is no token: it has more than ASCII characters")
    authority = str(values["certificate-authority"])
    insecure = bool(values["insecure-skip-tls-verify"])
    if not insecure and not authority:
        if token or values["kubeconfig"]:
            problems.append(
                "--certificate-authority: needed, as credentials would go to whoever answers; "
                "--insecure-skip-tls-verify accepts that"
            )
        elif host and host not in _LOCAL:
            problems.append("--certificate-authority: needed for another machine (or --insecure-skip-tls-verify)")
        insecure = True  # nothing secret is sent
    if len(problems) > before:
        return None
    tls = TLSFiles(ca_file=Path(authority) if authority else None, insecure=insecure)
    return ManagerAccess(server.rstrip("/"), str(values["kubeconfig"]), token, tls)


def _host(server: str) -> str:
    """The host of an address; empty if it is none."""
    try:
        parts = urlsplit(server)
        valid = parts.scheme == "https" and parts.port != 0
    except ValueError:
        return ""
    return parts.hostname or "" if valid else ""


def run(
    arguments: Sequence[str],
    flags: FlagSet,
    about: str,
    read: Callable[[Parsed, list[str]], C | None],
    work: Callable[[C], Awaitable[int]],
    *,
    is_endless: Callable[[C], bool] = lambda command: False,
) -> int:
    """Run a command that reads a manager; returns the exit code. ``read``: makes the command of parsed flags, or adds
    the problems and returns None. Ctrl-C ends it with the terminal as it was, and without an error if it has no end of
    its own (``is_endless``): of another one the output is missing."""
    parsed = flags.parse(list(arguments))
    if parsed.values.get("help") and not parsed.problems:
        sys.stdout.write(usage.help_text(about, flags))
        return 0
    problems = [*parsed.problems, *not_utf8(parsed, PATHS)]
    command = read(parsed, problems)
    if problems or command is None:
        return fail(problems)
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # what was begun is cleaned up

    async def main() -> int:
        return await work(command)

    try:
        return asyncio.run(main())
    except (ReadError, AccessError, TLSFilesError, FormatError) as error:
        return fail([str(error)])
    except KeyboardInterrupt:
        return 0 if is_endless(command) else fail(["interrupted"])


def outside_of_choices(flags: Iterable[Flag], values: Mapping[str, object]) -> Iterator[str]:
    """The errors of flags that have a value which is none of their choices."""
    for flag in flags:
        if flag.choices and values[flag.name] not in flag.choices:
            yield f"--{flag.name}: {values[flag.name]} is none of {', '.join(flag.choices)}"


@contextlib.asynccontextmanager
async def opened(to: ManagerAccess, clock: RealClock, purpose: str) -> AsyncIterator[tuple[Transport, Client | None]]:
    """Connections to the manager and, with a kubeconfig, a client of its cluster. purpose: for the user agent. Raises
    AccessError and TLSFilesError."""
    manager, client = Access(to.server, to.tls, credentials=Fixed(bearer(to.token)) if to.token else ANONYMOUS), None
    async with contextlib.AsyncExitStack() as stack:
        if to.kubeconfig:
            found = await access.load(path=to.kubeconfig, master="", clock=LoopClock())
            client = await stack.enter_async_context(client_of(found, clock, purpose))
            if not to.token:
                tls, certificate = _with_certificate(to.tls, found), found.certificate
                manager = Access(to.server, tls, credentials=found.credentials, certificate=certificate)
        transport = Authorized(Session(manager, clock), manager.credentials)
        stack.push_async_callback(transport.close)
        yield transport, client


@contextlib.asynccontextmanager
async def cluster(kubeconfig: str, clock: RealClock, purpose: str) -> AsyncIterator[Client]:
    """A client that only reads, of the cluster of a kubeconfig or, if it is empty, of this pod. purpose: for the user
    agent. Raises AccessError and TLSFilesError."""
    async with client_of(await access.load(path=kubeconfig, master="", clock=LoopClock()), clock, purpose) as client:
        yield client


def namespace_of(kubeconfig: str) -> str:
    """The namespace of names that have none: of the context of a kubeconfig or, without one, of this pod. Empty if it
    is not told, or if the kubeconfig cannot be read, which is reported when it is."""
    try:
        return kubeconfigs.read(kubeconfig).namespace if kubeconfig else access.own_namespace()
    except AccessError:
        return ""


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
