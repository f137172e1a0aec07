"""Records what the Go manager logs at -v=2, and what it writes, while the story is played.

    KUBEBUILDER_ASSETS=... python -m tests.logs.record [FOLDER]

tests/recorded/log.json gets the distinct lines of controllers (verbosity, -1 for errors; message; keys) and their
distinct writes (client, verb, resource, workload), from the API server's audit log. FOLDER gets the whole logs.
"""

import asyncio
import json
import os
import random
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from kcm_cli.component.clock import LoopClock
from kcm_cli.rest import access
from kcm_cli.rest.authorized import Authorized
from kcm_cli.rest.client import Client
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.rest.session import Session
from kcm_cli.sandbox.nodes.agents import NodeOptions
from tests.kit.places import ROOT
from tests.kit.servers import real_cluster
from tests.kit.world import simulated
from tests.logs.story import SPACE, Story, workload_of

FILE = ROOT / "tests" / "recorded" / "log.json"
_USERS = "system:serviceaccount:kube-system:"
_FLAGS = ("-v=2", "--logging-format=json", "--terminated-pod-gc-threshold=1", "--node-monitor-grace-period=20s")
_ALWAYS = {"ts", "caller", "msg", "v", "logger", "err"}
_NOT_CONTROLLERS = ("app", "dynamiccertificates", "flag", "headerrequest", "metrics", "options", "server", "volume")
"""Folders of code that logs about the process."""
_OTHERS = {"service-ca-cert-publisher"}
"""Clients that Kubernetes does not have, but the build that is recorded."""


async def _run(folder: Path) -> None:
    clock = LoopClock()
    found = await access.load(path=str(folder / "kubeconfig"), master="", clock=clock)
    transport = Authorized(Session(found, clock), found.credentials)
    await clock.sleep(5)
    client = Client(transport, limiter=Unlimited(), user_agent="kubectl/v1.36.0", clock=clock)
    async with simulated(transport, clock, random.Random(1), NodeOptions(0)).running():
        await Story(client, clock.sleep).play()


def lines_of(log: Iterable[str]) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """Of each line about controllers: verbosity, message and keys."""
    for text in log:
        try:
            line: dict[str, Any] = json.loads(text)
        except ValueError:
            continue
        folder = line["caller"].partition("/")[0]
        if folder not in _NOT_CONTROLLERS and "publisher" not in line["caller"] + line["msg"]:
            yield line.get("v", -1), line["msg"], tuple(key for key in line if key not in _ALWAYS)


def writes_of(audit: Iterable[str]) -> Iterator[tuple[str, str, str, str]]:
    """The controllers' writes to objects of the story: the client, verb, resource and workload."""
    for text in audit:
        entry = json.loads(text)
        ref = entry.get("objectRef", {})
        if entry["stage"] != "ResponseComplete" or entry.get("responseStatus", {}).get("code", 500) >= 300:
            continue
        name = ref.get("name") or ((entry.get("responseObject") or {}).get("metadata") or {}).get("name", "")
        client = entry["user"]["username"].removeprefix(_USERS)
        if client not in _OTHERS and (ref.get("namespace") in (SPACE, "doomed") or ref.get("resource") == "nodes"):
            resource = "/".join(filter(None, (ref["resource"], ref.get("subresource"))))
            yield client, entry["verb"], resource, workload_of(name)


def reduced(folder: Path) -> str:
    """The recording, from the logs in a folder."""
    lines = sorted({*lines_of((folder / "manager.log").read_text().splitlines())})
    writes = sorted({*writes_of((folder / "audit.log").read_text().splitlines())})
    rows = {"lines": lines, "writes": writes}
    parts = (f' "{name}": [\n' + ",\n".join(f"  {json.dumps(row)}" for row in rows[name]) + "\n ]" for name in rows)
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main(folders: list[str]) -> None:
    with real_cluster(Path(os.environ["KUBEBUILDER_ASSETS"]), *_FLAGS) as (_, folder, _):
        asyncio.run(_run(folder))
        FILE.write_text(reduced(folder))
        for place in folders:
            shutil.copytree(folder, place, dirs_exist_ok=True)


if __name__ == "__main__":
    main(sys.argv[1:])
