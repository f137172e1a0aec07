"""How soon a standby writes after its leader ended, on many pods: a line of JSON for each program and way to end.

    KUBEBUILDER_ASSETS=DIR python -m tests.bench.standby [--pods 50000]

DIR has etcd, kube-apiserver and kube-controller-manager. A Deployment is created as soon as the leader has been killed
(``kill``) or told to end (``term``). ``leads_s``: until the standby wrote its name in the lease, ``writes_s``: until
the API server received its first write to anything but leases and Events; both since the end of the leader began.
``before``: the writes of the standby until then, as the API server's audit log has them, which is to be 0. ``quiet``:
CPU seconds that the standby takes in 10 s beside an idle leader. The lease lasts 15 s.
"""

import argparse
import asyncio
import json
import os
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp

from tests.bench import objects
from tests.bench.api import Api
from tests.bench.loads import LEASE
from tests.bench.process import Manager, flags
from tests.kit.processes import KCM, free_port
from tests.kit.servers import TOKEN, kubeconfig, real_server

LEADER, STANDBY = "leader", "standby"
POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: None
    verbs: [get, list, watch]
  - level: None
    resources: [{group: "", resources: [events]}, {group: events.k8s.io}]
  - level: Metadata
    users: [admin]
"""
DEPLOYMENTS = 10
QUIET_CPU_S = 0.15
"""What a manager with nothing to do takes in STEP_S at most."""
STEP_S, QUIET_S, LIMIT_S = 2.0, 10.0, 60.0
POD_S = 0.01
NAMESPACE = "/api/v1/namespaces/load"
SETS = "/apis/apps/v1/namespaces/load/deployments"


@dataclass
class Cluster:
    """An API server with pods, and its audit log."""

    url: str
    folder: Path
    api: Api

    def manager(self, who: str, command: tuple[str, ...]) -> Manager:
        """A manager whose writes the audit log has under this name."""
        place, port = self.folder / who, free_port()
        place.mkdir(exist_ok=True)
        options = flags(place, self.url, port)
        named = f"{{token: {TOKEN}, as: {who}, as-groups: ['system:masters']}}"
        (place / "kubeconfig").write_text(kubeconfig(self.url).replace(f"{{token: {TOKEN}}}", named))
        return Manager([*command, *options], "")

    async def fill(self, pods: int) -> None:
        await self.api.call("POST", "/api/v1/namespaces", {"metadata": {"name": "load"}})
        manager = self.manager(LEADER, KCM)
        try:
            for number in range(DEPLOYMENTS):
                await self.api.call("POST", SETS, objects.deployment(f"d{number}", pods // DEPLOYMENTS))
            async with asyncio.timeout(LIMIT_S + pods * POD_S):
                while await self.api.count(f"{NAMESPACE}/pods") < pods:
                    await asyncio.sleep(0.5)
            await settled(manager)
        finally:
            manager.stop()

    def writes(self, after: int) -> Iterator[tuple[float, str]]:
        """Time and resource of what the standby has written since this place of the audit log."""
        with (self.folder / "audit.log").open("rb") as file:
            file.seek(after)
            for line in file:
                event: dict[str, Any] = json.loads(line)
                if event.get("impersonatedUser", {}).get("username") == STANDBY:
                    at = datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp()
                    yield at, event["objectRef"]["resource"]

    def position(self) -> int:
        """The end of the audit log."""
        return (self.folder / "audit.log").stat().st_size

    async def ends(self, command: tuple[str, ...], how: signal.Signals, name: str) -> dict[str, object]:
        """The figures of one end of a leader."""
        await self.api.call("DELETE", LEASE)
        running = [leader := self.manager(LEADER, command)]
        try:
            await settled(leader)
            place = self.position()
            running.append(standby := self.manager(STANDBY, command))
            await settled(standby)
            cpu_s = standby.cpu_s()
            await asyncio.sleep(QUIET_S)
            cpu_s = standby.cpu_s() - cpu_s
            before = sum(resource != "leases" for _, resource in self.writes(place))
            ended = time.time()
            leader.signal(how)
            await self.api.call("POST", SETS, objects.deployment(f"after-{name}-{how.name.lower()}", 1))
            first = await self._first(place, ended)
        finally:
            for each in running:
                each.stop()
        return {"before": before, "quiet": round(cpu_s, 2), **first}

    async def _first(self, place: int, ended: float) -> dict[str, float]:
        async with asyncio.timeout(LIMIT_S):
            while True:
                seen = [(at - ended, resource) for at, resource in self.writes(place) if at >= ended]
                leads = [at for at, resource in seen if resource == "leases"]
                wrote = [at for at, resource in seen if resource != "leases"]
                if leads and wrote:
                    return {"leads_s": round(leads[0], 2), "writes_s": round(wrote[0], 2)}
                await asyncio.sleep(0.2)


async def settled(manager: Manager) -> None:
    """Until a manager has little to do."""
    async with asyncio.timeout(LIMIT_S * 2):
        while True:
            before = manager.cpu_s()
            await asyncio.sleep(STEP_S)
            if manager.cpu_s() - before < QUIET_CPU_S:
                return


@asynccontextmanager
async def cluster(assets: Path) -> AsyncIterator[Cluster]:
    """A fresh one."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "policy.yaml").write_text(POLICY)
        audit = (f"--audit-policy-file={folder}/policy.yaml", f"--audit-log-path={folder}/audit.log")
        size = ("--audit-log-mode=blocking", "--audit-log-maxsize=4096")
        headers = {"authorization": f"Bearer {TOKEN}"}
        with real_server(assets, folder, *audit, *size) as url:
            async with aiohttp.ClientSession(
                url, headers=headers, connector=aiohttp.TCPConnector(ssl=False)
            ) as session:
                yield Cluster(url, folder, Api(session))


async def measure(assets: Path, pods: int) -> None:
    """All programs and ways."""
    programs = {
        "kcm --warm-standby": (*KCM, "--warm-standby"),
        "kcm": KCM,
        "kube-controller-manager": (f"{assets}/kube-controller-manager",),
    }
    async with cluster(assets) as made:
        await made.fill(pods)
        for number, (name, command) in enumerate(programs.items()):
            for how in (signal.SIGKILL, signal.SIGTERM):
                figures = await made.ends(command, how, str(number))
                end = how.name.removeprefix("SIG").lower()
                print(json.dumps({"program": name, "pods": pods, "end": end, **figures}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=50_000)
    args = parser.parse_args()
    if "KUBEBUILDER_ASSETS" not in os.environ:
        parser.error("KUBEBUILDER_ASSETS names no folder")
    asyncio.run(measure(Path(os.environ["KUBEBUILDER_ASSETS"]), args.pods))


if __name__ == "__main__":
    main()
