"""What a manager loads before its first pod: each module is a part of the time of every start."""

import subprocess
import sys

START = """
import sys
from kcm_cli.cli import manager
from kcm_cli.manager import app
from kcm_cli.manager.controller_map import all_controllers
for one in all_controllers():
    if one.default_enabled and not one.cloud_only:
        one.load()
print(*sys.modules)
"""
"""All modules of a start: the command line, the manager, and its controllers."""
OF_OTHER_COMMANDS = {
    "typer",
    "rich",
    "kcm_cli.cluster",
    "kcm_cli.plan",
    "kcm_cli.sandbox",
    "kcm_cli.top",
    "kcm_cli.trace",
}
OF_THE_FIRST_CLIENT = {"uvicorn", "starlette", "anyio", "click", "prometheus_client", "kcm_cli.manager.pages"}
ON_DEMAND = {"opentelemetry", "grpc", "re2", "kubernetes", "aiohttp", "tracemalloc", "multiprocessing"}


def test_a_start_loads_what_it_needs_only() -> None:
    done = subprocess.run([sys.executable, "-c", START], capture_output=True, text=True, timeout=60, check=True)
    loaded = set(done.stdout.split())
    assert {"asyncio", "kcm_cli.manager.lifecycle", "kcm_cli.controllers.replicaset.controller"} <= loaded
    assert loaded.isdisjoint(OF_OTHER_COMMANDS | OF_THE_FIRST_CLIENT | ON_DEMAND)
