"""``kcm sandbox``: a local control plane in one process."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import uvloop

from kcm_cli.sandbox.run import Sandbox, SandboxOptions


def parse(arguments: Sequence[str]) -> tuple[SandboxOptions, list[str]]:
    """The options, and the manager's flags after ``--``."""
    words = list(arguments)
    manager_flags: list[str] = []
    if "--" in words:
        cut = words.index("--")
        words, manager_flags = words[:cut], words[cut + 1 :]
    parser = argparse.ArgumentParser("kcm sandbox")
    parser.add_argument("--port", type=int, default=6443)
    parser.add_argument("--bind-address", default="127.0.0.1")
    parser.add_argument("--token", default="")
    parser.add_argument("--kubeconfig", default="")
    parser.add_argument("--data-dir", default="")
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--no-manager", dest="manager", action="store_false")
    return SandboxOptions(**vars(parser.parse_args(words))), manager_flags


async def run(options: SandboxOptions, manager_flags: Sequence[str]) -> int:
    """Serve until a signal."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    sandbox = Sandbox(options)
    await sandbox.start()
    if options.kubeconfig:
        sandbox.write_kubeconfig(Path(options.kubeconfig))
    sys.stdout.write(f"kcm sandbox serves on {sandbox.url}\n")
    sys.stdout.flush()
    await ended.wait()
    await sandbox.stop()
    return 0


def main(arguments: Sequence[str]) -> int:
    """Parse and run; the exit code."""
    options, manager_flags = parse(arguments)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(run(options, manager_flags))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
