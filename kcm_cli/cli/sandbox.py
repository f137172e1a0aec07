"""``kcm sandbox``: a local control plane in one process, with the manager.

The API server, the simulated nodes, the scheduler and the controllers share one event loop. A second loop on another
thread would not be faster, since the interpreter runs one at a time, and each request would have to wait for it twice.
"""

import asyncio
import contextlib
import errno
import logging
import shlex
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kcm_cli.cli import sandbox_flags
from kcm_cli.cli.manager import announce, fail
from kcm_cli.cli.sandbox_flags import Command
from kcm_cli.component import logs
from kcm_cli.component.flagset import FlagSet
from kcm_cli.component.logs_config import LogsConfig
from kcm_cli.component.loops import run_process
from kcm_cli.runtime.tasks import innermost
from kcm_cli.sandbox.apiserver.controllers.bootstrap import BootstrapError
from kcm_cli.sandbox.apiserver.settings import DELETION_GAP_S
from kcm_cli.sandbox.apiserver.store import DirectoryInUse
from kcm_cli.sandbox.run import NoFolderError, SandboxServer
from kcm_cli.serving.openssl_callbacks import NoCallbacksError

if TYPE_CHECKING:
    from kcm_cli.cluster.manager import SandboxManager

log = logging.getLogger(__name__)
_ABOUT_STARTS = ("kcm_cli.manager.controllers", "kcm_cli.manager.selection", "kcm_cli.engine.controller")
"""Loggers of which people see only warnings: the other lines would push the address off the screen. With -v=1 they see
all."""


def main(arguments: Sequence[str]) -> int:
    """Run a sandbox until a signal stops it; returns the exit code."""
    if list(arguments[:1]) == ["nodes"]:
        from kcm_cli.cli import sandbox_nodes  # imported here: a sandbox needs no session to start

        return sandbox_nodes.main(arguments[1:])
    if list(arguments[:1]) == ["assets"]:
        from kcm_cli.cli import sandbox_assets  # imported here: for nobody else

        return sandbox_assets.main(arguments[1:])
    command, problems = sandbox_flags.read(arguments)
    if command.help:
        sys.stdout.write(sandbox_flags.help_text())
        return 0
    if problems:
        return fail(problems)
    logs.setup(LogsConfig())  # until the manager's flags say otherwise, if there is one
    return run_process(_run(command))


def completion(arguments: Sequence[str]) -> tuple[FlagSet, tuple[str, ...]]:
    """The flags and words that may come next."""
    if list(arguments[:1]) == ["nodes"]:
        from kcm_cli.cli import sandbox_nodes  # imported here: a sandbox needs no session to start

        return sandbox_nodes.FLAGS, () if len(arguments) > 1 else sandbox_nodes.VERBS
    if list(arguments[:1]) == ["assets"]:
        from kcm_cli.cli import sandbox_assets  # imported here: for nobody else

        return sandbox_assets.FLAGS, ()
    return sandbox_flags.FLAGS, () if arguments else ("nodes", "assets")


async def _run(command: Command) -> int:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup
            loop.add_signal_handler(number, stop.set)
    settings = replace(command.options.settings, deletion_gap_s=DELETION_GAP_S)  # it runs in real time
    sandbox = SandboxServer(replace(command.options, settings=settings))
    try:
        problem = _prepare(sandbox)
        return fail([problem]) if problem else await _serve(command, sandbox, stop)
    finally:
        await sandbox.stop()


def _prepare(sandbox: SandboxServer) -> str:
    """Bind and load data. Returns the error as text; empty without one."""
    options = sandbox.options
    try:
        sandbox.prepare()
    except (DirectoryInUse, NoFolderError) as error:
        return str(error)
    except OSError as error:
        if error.filename is None:
            hint = " (--port 0 takes a free port)" if error.errno == errno.EADDRINUSE else ""
            return f"cannot listen on {options.bind_address}:{options.port}: {error.strerror}{hint}"
        why = "it is no directory" if isinstance(error, FileExistsError) else error.strerror
        return f"--data-dir: cannot use {options.data_dir}: {why}"
    except (sqlite3.Error, ValueError) as error:
        return f"--data-dir: cannot use {options.data_dir}: {error}"
    return _open_audit_log(sandbox) or _write_kubeconfig(sandbox) or _write_certificates(sandbox)


def _open_audit_log(sandbox: SandboxServer) -> str:
    try:
        sandbox.open_audit_log()
    except OSError as error:
        return f"--audit-log-path: cannot write {error.filename}: {error.strerror}"
    return ""


def _write_certificates(sandbox: SandboxServer) -> str:
    folder, routes = sandbox.webhook_certificates, sandbox.options.routes
    try:
        if routes:
            sandbox.write_webhook_certificates(folder, [service for service, _ in routes])
    except OSError as error:
        return f"--route: cannot write {folder}: {error.strerror}"
    return ""


def _write_kubeconfig(sandbox: SandboxServer) -> str:
    try:
        sandbox.write_kubeconfig()
    except OSError as error:
        return f"--kubeconfig: cannot write {sandbox.kubeconfig}: {error.strerror}"
    except ValueError as error:
        return f"--kubeconfig: {error}"
    return ""


async def _serve(command: Command, server: SandboxServer, stop: asyncio.Event) -> int:
    # imported here: help needs no cluster
    from kcm_cli.cluster.sandbox import sandbox_cluster

    manager = None
    if command.options.manager:
        # imported here: a sandbox without manager needs no controllers
        from kcm_cli.cluster.manager import SandboxManager
        from kcm_cli.manager.config import ConfigError

        try:
            manager = SandboxManager(server, command.manager_flags, real_time=True)
        except ConfigError as error:
            return fail(error.problems)
    made = sandbox_cluster(server, manager, simulated=command.options.nodes > 0)
    shown = _shown(server, manager, stop if command.view else None)
    try:
        with _quiet(manager.config.logs.verbosity if manager is not None else 0):
            async with replace(made, server=shown).running(stop) as cluster:
                await stop.wait()
    except BootstrapError as error:
        return fail([f"the cluster's first objects could not be made: {error}"])
    except NoCallbacksError as error:
        return fail([str(error)])
    for task, failure in cluster.failed:
        log.error("Task ended", extra={"fields": {"task": task, "err": str(innermost(failure))}}, exc_info=failure)
    return cluster.code or int(bool(cluster.failed))


@asynccontextmanager
async def _shown(
    server: SandboxServer, manager: "SandboxManager | None", stop: asyncio.Event | None
) -> AsyncIterator[None]:
    """Run the server, say where it is, and show the state until ``stop``, or not if that is None. The manager logs
    above the view, so that logging is set up within it."""
    async with server:
        _announce_address(server)
        async with _view(server, manager, stop) if stop is not None else contextlib.nullcontext():
            if manager is not None:
                announce(manager.config)
            yield


def _announce_address(server: SandboxServer) -> None:
    kubeconfig = shlex.quote(str(server.kubeconfig))
    sys.stdout.write(f"kcm sandbox serves on {server.url}\nexport KUBECONFIG={kubeconfig}\n")
    if server.options.routes:
        sys.stdout.write(f"webhook certificates in {shlex.quote(str(server.webhook_certificates))}\n")
    sys.stdout.flush()


@contextmanager
def _quiet(verbosity: int) -> Iterator[None]:
    """At -v=0, log only warnings about the start of controllers."""
    loggers = [logging.getLogger(name) for name in _ABOUT_STARTS] if verbosity == 0 else []
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def _view(
    sandbox: SandboxServer, manager: "SandboxManager | None", stop: asyncio.Event
) -> AbstractAsyncContextManager[None]:
    # imported here: rich is needed for nothing else
    from kcm_cli.cli.sandbox_view import ManagerView, view
    from kcm_cli.sandbox.status.counts import Counts
    from kcm_cli.sandbox.status.state import SandboxState

    counts = Counts(sandbox.store, sandbox.clock)

    def take() -> SandboxState:
        return SandboxState(
            url=sandbox.url,
            kubeconfig=str(sandbox.kubeconfig),
            nodes=counts.nodes,
            pods=counts.pods,
            workloads=counts.workloads.unready,
            events=counts.events,
        )

    return view(take, ManagerView(manager, sandbox.clock) if manager is not None else None, stop)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
