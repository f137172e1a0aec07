"""What a controller manager costs: seconds, CPU seconds, memory and writes for a few loads, one JSON line each.

    make bench                                   a sandbox and kcm, each a process of its own
    python -m tests.bench.run --server URL --token T [--metrics URL] -- CMD...    any manager on any API server

``go`` in a line is what the Go binary took on the same kind of machine (2 cores). ``writes`` are the requests that
write, Events included; they are counted where --metrics says where the manager serves its metrics to everybody
(--authorization-always-allow-paths=/metrics). The loads need no kubelets; nodes have to outlive that nobody renews
them (--node-monitor-grace-period=1h).
"""

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import aiohttp

from tests.bench.api import Api
from tests.bench.loads import AFTER, LOADS, SETTLE_S, Bench
from tests.bench.process import Manager

START_S = 60.0
PORT, MANAGER_PORT = 16443, 16444
OPTIONS = (
    *("--secure-port", str(MANAGER_PORT), "--authorization-always-allow-paths=/metrics", "--leader-elect=false"),
    *("--kube-api-qps", "5000", "--kube-api-burst", "10000"),
    *("--node-monitor-grace-period=1h", "--node-startup-grace-period=1h"),
)


async def measure(server: str, token: str, command: list[str], metrics: str, scenarios: list[str]) -> None:
    connector = aiohttp.TCPConnector(ssl=False, limit=64)
    headers = {"authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(server, headers=headers, connector=connector, read_bufsize=2**22) as session:
        await Bench(Api(session), lambda: Manager(command, metrics)).all(scenarios)


def with_sandbox(scenarios: list[str]) -> None:
    """Measure kcm on a sandbox, each in its own process."""
    kcm = [sys.executable, "-m", "kcm_cli.cli.main"]
    with tempfile.TemporaryDirectory() as folder:
        config = f"{folder}/kubeconfig"
        options = ["--nodes", "0", "--no-manager", "--port", str(PORT), "--token", "bench", "--kubeconfig", config]
        sandbox = subprocess.Popen([*kcm, "sandbox", *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for(sandbox, Path(config))
            time.sleep(SETTLE_S)
            clients = [f"--{who}kubeconfig={config}" for who in ("", "authentication-", "authorization-")]
            command = [*kcm, *clients, "--cert-dir", folder, *OPTIONS]
            metrics = f"https://127.0.0.1:{MANAGER_PORT}/metrics"
            asyncio.run(measure(f"https://127.0.0.1:{PORT}", "bench", command, metrics, scenarios))
        finally:
            sandbox.terminate()
            sandbox.wait(20)


def wait_for(sandbox: subprocess.Popen[bytes], config: Path) -> None:
    """Until the sandbox has written its kubeconfig, which it does when it serves. Ends the program if it cannot."""
    deadline = time.monotonic() + START_S
    while not config.exists():
        if sandbox.poll() is not None or time.monotonic() > deadline:
            sys.exit("The sandbox did not start; `kcm sandbox --port 16443` says why.")
        time.sleep(0.1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server")
    parser.add_argument("--token", default="")
    parser.add_argument("--metrics", default="")
    parser.add_argument("--scenarios", default=",".join(LOADS))
    parser.add_argument("command", nargs=argparse.REMAINDER, help="-- CMD, the manager to measure")
    args = parser.parse_args()
    scenarios = [name for name in args.scenarios.split(",") if name]
    for position, name in enumerate(scenarios):
        if name not in LOADS:
            parser.error(f"--scenarios: {name!r} is none of {', '.join(LOADS)}")
        if name in AFTER and AFTER[name] not in scenarios[:position]:
            parser.error(f"--scenarios: {name} needs {AFTER[name]} before it")
    if args.server:
        command = [word for word in args.command if word != "--"]
        asyncio.run(measure(args.server, args.token, command, args.metrics, scenarios))
    else:
        with_sandbox(scenarios)


if __name__ == "__main__":
    main()
