"""``kube-apiserver`` in the folder that ``kcm sandbox assets`` creates: a sandbox with kube-apiserver's flags.

envtest starts it, requests /healthz every 100 ms, and stops it with SIGTERM. Nodes and controllers start after the
server. The variable KCM_SANDBOX_FLAGS has the sandbox's own flags.
"""

import asyncio
import contextlib
import gc
import importlib
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kcm_cli.cli.kube_apiserver_options import Command
    from kcm_cli.cli.sandbox_assets import Cluster
    from kcm_cli.sandbox.run import SandboxServer

_HELP = ("--help", "-h")
_NAME = "kube-apiserver"


def main(arguments: Sequence[str]) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit code. Errors are printed to standard error, one line each."""
    if any(word in _HELP for word in arguments):
        return _help()
    printed = next((word for word in arguments if word in ("--version", "--version=true", "--version=raw")), "")
    if printed:
        # imported here, as all below: envtest asks for --help before each start
        from kcm_cli.component.version import GIT_VERSION, raw_version

        sys.stdout.write(f"{raw_version() if printed.endswith('raw') else f'Kubernetes {GIT_VERSION}'}\n")
        return 0
    from kcm_cli.component.garbage import loading

    with loading():
        from kcm_cli.cli.kube_apiserver_options import read
        from kcm_cli.cli.sandbox_assets import read_flags
        from kcm_cli.component import descriptors
        from kcm_cli.component.loops import new_event_loop
        from kcm_cli.sandbox.assets.folder import FLAGS
        from kcm_cli.sandbox.networks import misfit

        command = read(arguments)
        words, broken = _split(os.environ.get(FLAGS, ""))
        cluster, problems = read_flags(words)
    for note in command.notes:
        sys.stderr.write(f"{_NAME}: {note}\n")
    wrong = [*command.problems, *(f"{FLAGS}: {problem}" for problem in (*broken, *problems))]
    if problem := misfit(command.settings.service_ranges, nodes=cluster.nodes > 0):
        wrong.append(f"--service-cluster-ip-range: {problem}")
    if wrong:
        return _fail(wrong)
    descriptors.allow_many()
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(_run(command, cluster))


def _split(text: str) -> tuple[list[str], list[str]]:
    """(the words of a variable, errors)."""
    try:
        return shlex.split(text), []
    except ValueError as error:
        return [], [str(error)]


def _help() -> int:
    from kcm_cli.cli import usage
    from kcm_cli.cli.kube_apiserver_flags import ABOUT, flags

    sys.stdout.write(usage.help_text(ABOUT, flags()))
    return 0


def _fail(problems: Sequence[str]) -> int:
    for problem in problems:
        sys.stderr.write(f"Error: {_NAME}: {' '.join(problem.split())}\n")
    return 1 if problems else 0


async def _run(command: "Command", cluster: "Cluster") -> int:
    from kcm_cli.sandbox.run import SandboxOptions, SandboxServer

    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    options = SandboxOptions(
        port=command.port,
        bind_address=command.address,
        nodes=cluster.nodes,
        routes=cluster.routes,
        settings=command.settings,
        keys=command.keys,
        audit=command.audit,
    )
    sandbox = SandboxServer(options)
    try:
        problem = _prepare(sandbox, command)
        if problem:
            return _fail([problem])
        await sandbox.serve()
        return await _accompany(sandbox, cluster, command, stop)
    finally:
        await sandbox.stop()


def _prepare(sandbox: "SandboxServer", command: "Command") -> str:
    """Bind and create certificates. Returns the error as text; empty without one."""
    from kcm_cli.sandbox.run import NoFolderError

    try:
        sandbox.prepare()
    except NoFolderError as error:
        return str(error)
    except OSError as error:
        return f"cannot listen on {command.address}:{command.port}: {error.strerror}"
    except ValueError as error:
        return f"the certificates or keys cannot be used: {error}"
    try:
        sandbox.open_audit_log()
    except OSError as error:
        return f"--audit-log-path: cannot write {error.filename}: {error.strerror}"
    if command.certificates is not None:
        try:
            sandbox.certificates.write_pair(command.certificates, "apiserver", sandbox.certificates.serving)
        except OSError as error:
            return f"--cert-dir: cannot write {command.certificates}: {error.strerror}"
    return ""


async def _accompany(server: "SandboxServer", cluster: "Cluster", command: "Command", stop: asyncio.Event) -> int:
    """Run nodes and controllers beside the server. Their modules are loaded on a thread."""
    await asyncio.to_thread(importlib.import_module, "kcm_cli.cluster.sandbox")
    # imported here: the server is ready sooner
    from msgspec.structs import replace

    from kcm_cli.cluster.sandbox import sandbox_cluster
    from kcm_cli.runtime.tasks import innermost

    manager = None
    if cluster.manager:
        await asyncio.to_thread(importlib.import_module, "kcm_cli.cluster.manager")
        from kcm_cli.cluster.manager import ALONE, SandboxManager
        from kcm_cli.manager.config import ConfigError
        from kcm_cli.sandbox.assets.folder import FLAGS

        gates = [f"--feature-gates={gate}" for gate in command.gates]
        try:
            manager = SandboxManager(server, (*ALONE, *gates, *cluster.manager_flags))
        except ConfigError as error:
            return _fail([f"{FLAGS}: {problem}" for problem in error.problems])
    made = sandbox_cluster(server, manager, simulated=cluster.nodes > 0)
    async with replace(made, server=contextlib.nullcontext()).running(stop) as running:
        await stop.wait()
    return running.code or _fail([f"{name}: {innermost(error)}" for name, error in running.failed])


if __name__ == "__main__":
    code = main(sys.argv[1:])
    gc.freeze()  # the process ends: its objects need not be collected one by one
    sys.exit(code)
