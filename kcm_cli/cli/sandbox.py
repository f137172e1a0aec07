"""``kcm sandbox``: a local control plane in one process, with the manager on it.

The API server, the simulated nodes, the scheduler and the controllers share one event loop: a second loop on a thread
of its own would not run any faster, for the interpreter runs one at a time, and each request would wait for it twice.
"""

import asyncio
import contextlib
import functools
import logging
import shlex
import signal
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import uvloop

from kcm_cli.cli import usage
from kcm_cli.cli.manager import fail
from kcm_cli.component.flagset import Flag, FlagSet
from kcm_cli.component.kinds import BOOL, INT, STRING
from kcm_cli.runtime.tasks import Tasks, innermost
from kcm_cli.sandbox.apiserver.store import DirectoryInUse
from kcm_cli.sandbox.run import Sandbox, SandboxOptions

if TYPE_CHECKING:
    from kcm_cli.cli.sandbox_manager import SandboxManager

log = logging.getLogger(__name__)

_FLAGS = (
    Flag("port", INT, 6443, "The port of the API server; 0 takes a free one.", "Sandbox"),
    Flag("bind-address", STRING, "127.0.0.1", "The address on which the API server listens.", "Sandbox"),
    Flag("token", STRING, "", "A bearer token of the administrator; without one, certificates alone serve.", "Sandbox"),
    Flag(
        "kubeconfig",
        STRING,
        "",
        "Where the administrator's kubeconfig goes, beside what the file has already; without it, where the data is.",
        "Sandbox",
    ),
    Flag("data-dir", STRING, "", "A directory that keeps the cluster; without one it is gone at the end.", "Sandbox"),
    Flag("nodes", INT, 3, "How many nodes are simulated; with 0 there is no scheduler, either.", "Sandbox"),
    Flag("no-manager", BOOL, False, "Leave the controllers out.", "Sandbox"),
    Flag("no-view", BOOL, False, "Plain lines on a terminal, too, in the place of the status view.", "Sandbox"),
    Flag("help", BOOL, False, "Show this text.", "Sandbox", shorthand="h"),
)
_ABOUT = """kcm sandbox runs a Kubernetes control plane in one process: an API server, simulated nodes, a scheduler
and the controllers. Flags of the controller manager follow after --.

Usage:
  kcm sandbox [flags] [-- manager flags]
  kcm sandbox nodes add|remove|fail|recover [NAME...]"""


@dataclass(frozen=True, slots=True)
class Command:
    """What the command line says."""

    options: SandboxOptions
    view: bool
    manager_flags: tuple[str, ...]


def main(arguments: Sequence[str]) -> int:
    """Run a sandbox until it is told to end; the exit code."""
    if list(arguments[:1]) == ["nodes"]:
        from kcm_cli.cli import sandbox_nodes  # imported here: a sandbox needs no session to start

        return sandbox_nodes.main(arguments[1:])
    words, manager_flags = _split(arguments)
    flags = FlagSet(_FLAGS)
    parsed = flags.parse(words)
    if parsed.values.get("help"):
        sys.stdout.write("\n".join([_ABOUT, *usage.sections(flags, usage.width())]) + "\n")
        return 0
    problems = [*parsed.problems, *(f'unexpected argument "{word}"' for word in parsed.rest)]
    if problems:
        return fail(problems)
    values = {flag.name: parsed.values.get(flag.name, flag.default) for flag in _FLAGS}
    options = SandboxOptions(
        port=_whole(values["port"]),
        bind_address=str(values["bind-address"]),
        token=str(values["token"]),
        kubeconfig=str(values["kubeconfig"]),
        data_dir=str(values["data-dir"]),
        nodes=_whole(values["nodes"]),
        manager=not values["no-manager"],
    )
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_run(Command(options, not values["no-view"], tuple(manager_flags))))


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    words = list(arguments)
    if "--" not in words:
        return words, []
    cut = words.index("--")
    return words[:cut], words[cut + 1 :]


def _whole(value: object) -> int:
    assert isinstance(value, int)
    return value


async def _run(command: Command) -> int:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    sandbox = Sandbox(command.options)
    try:
        problem = _prepare(sandbox)
        return fail([problem]) if problem else await _serve(command, sandbox, stop)
    finally:
        await sandbox.stop()


def _prepare(sandbox: Sandbox) -> str:
    """What is wrong, if anything."""
    try:
        sandbox.prepare()
        sandbox.write_kubeconfig()
    except DirectoryInUse as error:
        return str(error)
    except (OSError, sqlite3.Error, ValueError) as error:
        return _cannot_start(sandbox.options, error)
    return ""


async def _serve(command: Command, sandbox: Sandbox, stop: asyncio.Event) -> int:
    manager = None
    if command.options.manager:
        # imported here: a sandbox without manager needs no controllers
        from kcm_cli.cli.sandbox_manager import SandboxManager
        from kcm_cli.manager.config import ConfigError

        try:
            manager = SandboxManager(sandbox, command.manager_flags)
        except ConfigError as error:
            return fail(error.problems)
    await sandbox.serve()
    kubeconfig = shlex.quote(str(sandbox.kubeconfig))
    sys.stdout.write(f"kcm sandbox serves on {sandbox.url}\nexport KUBECONFIG={kubeconfig}\n")
    sys.stdout.flush()
    async with contextlib.AsyncExitStack() as running:
        if command.view:
            await running.enter_async_context(_view(sandbox, manager, stop))
        if command.options.nodes > 0:
            tasks = Tasks(functools.partial(_ended, stop))
            running.push_async_callback(tasks.stop)
            tasks.start("simulation", sandbox.cluster().run())
        if manager is not None:
            return await manager.run(stop)
        await stop.wait()
        return 0


def _view(sandbox: Sandbox, manager: "SandboxManager | None", stop: asyncio.Event) -> AbstractAsyncContextManager[None]:
    # imported here: rich is needed for nothing else
    from kcm_cli.cli.sandbox_view import view
    from kcm_cli.sandbox.status.counts import Counts
    from kcm_cli.sandbox.status.snapshot import Snapshot

    counts = Counts(sandbox.store, sandbox.clock)

    def take() -> Snapshot:
        return Snapshot(
            url=sandbox.url,
            kubeconfig=str(sandbox.kubeconfig),
            nodes=counts.nodes,
            pods=counts.pods,
            controllers=manager.controllers() if manager is not None else None,
            events=counts.events,
        )

    return view(take, stop)


def _ended(stop: asyncio.Event, task: str, error: BaseException) -> None:
    """Without nodes and scheduler nothing would be as it should: end, and say why."""
    log.error("Task ended", extra={"fields": {"task": task, "err": str(innermost(error))}}, exc_info=error)
    stop.set()


def _cannot_start(options: SandboxOptions, error: Exception) -> str:
    if isinstance(error, OSError) and error.errno is not None and not error.filename:
        return f"cannot listen on {options.bind_address}:{options.port}: {error.strerror}"
    return f"cannot start the sandbox: {error}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
