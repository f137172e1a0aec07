"""``kcm sandbox``: a local control plane in one process, with the manager on it.

The API server, the simulated nodes, the scheduler and the controllers share one event loop: a second loop on a thread
of its own would not run any faster, for the interpreter runs one at a time, and each request would wait for it twice.
"""

import asyncio
import logging
import signal
import socket
import sqlite3
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import uvloop

from kcm_cli.cli import usage
from kcm_cli.cli.manager import announce, fail
from kcm_cli.component.flagset import Flag, FlagSet
from kcm_cli.component.kinds import BOOL, INT, STRING
from kcm_cli.sandbox.apiserver.store import DirectoryInUse
from kcm_cli.sandbox.run import Sandbox, SandboxOptions

log = logging.getLogger(__name__)

_MANAGER_PORT = 10257
_FLAGS = (
    Flag("port", INT, 6443, "The port of the API server; 0 takes a free one.", "Sandbox"),
    Flag("bind-address", STRING, "127.0.0.1", "The address on which the API server listens.", "Sandbox"),
    Flag("token", STRING, "", "A bearer token of the administrator; without one, certificates alone serve.", "Sandbox"),
    Flag("kubeconfig", STRING, "", "A file to which the administrator's kubeconfig is written.", "Sandbox"),
    Flag("data-dir", STRING, "", "A directory that keeps the cluster; without one it is gone at the end.", "Sandbox"),
    Flag("nodes", INT, 3, "How many nodes are simulated; with 0 there is no scheduler, either.", "Sandbox"),
    Flag("no-manager", BOOL, False, "Leave the controllers out.", "Sandbox"),
    Flag("help", BOOL, False, "Show this text.", "Sandbox", shorthand="h"),
)
_ABOUT = """kcm sandbox runs a Kubernetes control plane in one process: an API server, simulated nodes, a scheduler
and the controllers. Flags of the controller manager follow after --.

Usage:
  kcm sandbox [flags] [-- manager flags]"""


@dataclass(frozen=True, slots=True)
class Command:
    """What the command line says."""

    options: SandboxOptions
    manager_flags: tuple[str, ...]


def main(arguments: Sequence[str]) -> int:
    """Run a sandbox until it is told to end; the exit code."""
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
        return runner.run(_run(Command(options, tuple(manager_flags))))


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
        await sandbox.start()
        if command.options.kubeconfig:
            sandbox.write_kubeconfig(Path(command.options.kubeconfig))
    except DirectoryInUse as error:
        return fail([str(error)])
    except (OSError, sqlite3.Error, ValueError) as error:
        return fail([_cannot_start(command.options, error)])
    sys.stdout.write(f"kcm sandbox serves on {sandbox.url}\n")
    sys.stdout.flush()
    try:
        return await _live(command, sandbox, stop)
    finally:
        await sandbox.stop()


def _cannot_start(options: SandboxOptions, error: Exception) -> str:
    if isinstance(error, OSError) and error.errno is not None and not error.filename:
        return f"cannot listen on {options.bind_address}:{options.port}: {error.strerror}"
    return f"cannot start the sandbox: {error}"


async def _live(command: Command, sandbox: Sandbox, stop: asyncio.Event) -> int:
    """Until ``stop``, or until the manager ends by itself."""
    simulation = None
    if command.options.nodes > 0:
        simulation = asyncio.create_task(sandbox.cluster().run(), name="simulation")
    try:
        if not command.options.manager:
            await stop.wait()
            return 0
        return await _manage(command, sandbox, stop)
    finally:
        if simulation is not None:
            simulation.cancel()
            await asyncio.gather(simulation, return_exceptions=True)


async def _manage(command: Command, sandbox: Sandbox, stop: asyncio.Event) -> int:
    # imported here: a sandbox without manager needs no controllers
    from kcm_cli.manager.app import manage
    from kcm_cli.manager.config import ConfigError, complete
    from kcm_cli.manager.config_controllers import known_of
    from kcm_cli.manager.controller_map import all_controllers
    from kcm_cli.manager.options import flag_set

    parsed = flag_set().parse([*_manager_defaults(sandbox), *command.manager_flags])
    try:
        config = complete(parsed, known_of(all_controllers()))
    except ConfigError as error:
        return fail(error.problems)
    announce(config)

    def abandon(why: str) -> None:
        """Nothing to do here: the manager ends by itself, and the sandbox with it."""

    return await manage(config, stop, abandon=abandon, clock=sandbox.clock)


def _manager_defaults(sandbox: Sandbox) -> list[str]:
    """The flags with which a manager belongs to this sandbox. Those that the user gives come later, and win."""
    files = sandbox.manager_files()
    return [
        f"--kubeconfig={files.kubeconfig}",
        f"--authentication-kubeconfig={files.kubeconfig}",
        f"--authorization-kubeconfig={files.kubeconfig}",
        f"--root-ca-file={files.root_ca}",
        f"--service-account-private-key-file={files.service_account_key}",
        f"--cluster-signing-cert-file={files.signing_certificate}",
        f"--cluster-signing-key-file={files.signing_key}",
        "--bind-address=127.0.0.1",
        f"--secure-port={_free_port()}",
        "--kube-api-qps=5000",
        "--kube-api-burst=10000",
    ]


def _free_port() -> int:
    """The manager's usual port, or none where another process has it: two sandboxes live side by side."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", _MANAGER_PORT))
        except OSError:
            return 0
    return _MANAGER_PORT


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
