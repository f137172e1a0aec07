"""Records the incidents: the Go manager and scheduler on a real API server, with kubelets of the sandbox.

    KUBEBUILDER_ASSETS=... python -m tests.incidents.record [NAME...]

For each incident tests/recorded/trace gets NAME.json.gz: what an observer was shown that watched, what one is shown
that comes afterwards, and the part of the audit log that is about it. Only the fields that ``trace.views`` declares
are kept. The simulated kubelets have an administrator's token: their names are put in for it.
"""

import asyncio
import gzip
import json
import os
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec.structs import replace

from kcm_cli.component.clock import RealClock
from kcm_cli.machinery import codec
from kcm_cli.rest import access
from kcm_cli.rest.authorized import Authorized
from kcm_cli.rest.client import Client
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.rest.session import Session
from kcm_cli.sandbox.nodes import shape
from kcm_cli.sandbox.nodes.agents import NodeOptions
from kcm_cli.sandbox.views import NODES
from kcm_cli.trace.history import History
from kcm_cli.trace.join import Target
from kcm_cli.trace.observer import Observer, Wanted
from kcm_cli.trace.views import CoreV1Event, EventsV1Event, Seen
from tests.incidents.table import INCIDENTS, Incident
from tests.kit.places import ROOT
from tests.kit.processes import Processes, free_port
from tests.kit.servers import real_cluster
from tests.kit.space import POOL, Space
from tests.kit.world import simulated
from tests.plans.metrics_api import MetricsApi
from tests.plans.record import Recorder

PLACE = ROOT / "tests" / "recorded" / "trace"
_POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: None
    verbs: [get, list, watch]
  - level: None
    resources: [{group: coordination.k8s.io}, {group: authorization.k8s.io}, {group: authentication.k8s.io}]
  - level: RequestResponse
"""
_FLAGS = (
    "--node-monitor-grace-period=30s",
    "--horizontal-pod-autoscaler-sync-period=5s",
    "--horizontal-pod-autoscaler-cpu-initialization-period=1s",
    "--horizontal-pod-autoscaler-initial-readiness-delay=0s",
)
_LEFT_OUT = ("serviceaccounts", "configmaps", "endpoints", "endpointslices")
_ALICE = ("--as=alice", "--as-group=system:masters")


class Recording(History):
    """A history that keeps what it was told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[list[Any]] = []

    def version(self, kind: str, obj: Seen, at: float, **more: Any) -> None:
        self.told.append(["version", at, kind, _trimmed(obj), bool(more.get("listed"))])
        super().version(kind, obj, at, **more)

    def gone(self, kind: str, obj: Seen, at: float) -> None:
        self.told.append(["gone", at, kind, _trimmed(obj)])
        super().gone(kind, obj, at)

    def event(self, event: CoreV1Event, at: float) -> None:
        self.told.append(["event", at, "Event", _trimmed(event)])
        super().event(event, at)


def _trimmed(obj: Any) -> Any:
    return json.loads(codec.encode(obj))


class _NoScheduler:
    """In place of the sandbox's: the real one runs."""

    async def run(self) -> None:
        await asyncio.Event().wait()


class Kit:
    def __init__(self, assets: Path, folder: Path, client: Client, clock: RealClock, recorder: Recorder) -> None:
        self._assets, self._folder, self._client, self._clock = assets, folder, client, clock
        self._recorder = recorder

    async def kubectl(self, *words: str, text: str = "") -> str:
        arguments = [f"{self._assets}/kubectl", f"--kubeconfig={self._folder}/kubeconfig", *words]
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*arguments, stdin=pipe, stdout=pipe, stderr=pipe)
        out, error = await process.communicate(text.encode())
        if process.returncode:
            print(" ".join(words), error.decode().strip(), flush=True)
        return out.decode()

    async def play(self, one: Incident) -> dict[str, Any]:
        space = Space(one.name)
        await self.kubectl("create", "namespace", one.name)
        for number in range(1, one.nodes + 1):
            notes = {shape.SIMULATED: "true", shape.CAPACITY: "cpu=4,memory=16Gi"}
            metadata: dict[str, object] = {"name": f"{one.name}-{number}", "labels": {POOL: one.name}}
            node = {"apiVersion": "v1", "kind": "Node", "metadata": {**metadata, "annotations": notes}}
            await self._client.create(NODES, "", node)
        await asyncio.sleep(5)
        for doc in one.setup(space):
            await self.kubectl("apply", *_ALICE, "-f", "-", text=json.dumps(doc))
        await asyncio.sleep(25)
        before = await self.names(one)
        watched, listed = Recording(), Recording()
        about = Target("Pod", one.name, "")
        watching = asyncio.create_task(Observer(self._client, self._clock, Wanted(about), watched).follow())
        await asyncio.sleep(5)
        for act in one.acts(space):
            await self.act(one, act)
        await asyncio.sleep(one.wait_s)
        await Observer(self._client, self._clock, Wanted(about), listed).look()
        after = await self.names(one)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        kind, _, name = one.target.partition("/")
        if kind == "pod":
            seen = [told[3] for told in watched.told if told[2] == "Pod"]
            pods = sorted({pod["metadata"]["name"] for pod in seen} if one.name == "job-deadline" else before)
            ends = {pod["metadata"]["name"] for pod in seen if _ends(pod)}
            gone = [pod for pod in pods if pod.startswith(name) and (pod not in after or pod in ends)]
            name = (gone or [pod for pod in pods if pod.startswith(name)] or [name])[0]
        print(f"{one.name}: {kind}/{name}, {len(watched.told)} versions", flush=True)
        watched_, listed_ = (near(one.name, each.told) for each in (watched, listed))
        return {"target": [kind, one.name, name], "watched": watched_, "listed": listed_}

    async def act(self, one: Incident, act: Any) -> None:
        if isinstance(act, dict):
            await self.kubectl("apply", *_ALICE, "-f", "-", text=json.dumps(act))
        elif act.startswith("load "):
            self._recorder.loads[one.name, "web"] = int(act.split()[1]) * 4
            await asyncio.sleep(25)
        else:
            words = act.replace("{name}", one.name).split()
            about_node = words[0] in ("drain", "taint") or words[1] == "node"
            await self.kubectl(*words, *(() if about_node else ("-n", one.name)), *_ALICE)

    async def names(self, one: Incident) -> set[str]:
        found = await self.kubectl("get", "pods", "-n", one.name, "-o", "name")
        return {line.removeprefix("pod/") for line in found.split()}


def _ends(pod: Any) -> bool:
    """Whether it is being deleted, or was evicted by its kubelet."""
    return "deletionTimestamp" in pod["metadata"] or pod.get("status", {}).get("phase") == "Failed"


def near(name: str, told: list[list[Any]]) -> list[list[Any]]:
    """Without the nodes of other incidents."""
    found = []
    for one in told:
        obj = one[3]
        node = obj["metadata"]["name"] if one[2] == "Node" else ""
        if one[2] == "Event" and obj.get("involvedObject", {}).get("kind") == "Node":
            node = obj["involvedObject"]["name"]
        if not node or node.rpartition("-")[0] == name:
            found.append(one)
    return found


def audited(audit: Path, name: str) -> list[Any]:
    """The events of the audit log that are about an incident, as if each client had its own user."""
    found = []
    for line in audit.read_bytes().splitlines():
        event = json.loads(line)
        ref = event.get("objectRef") or {}
        is_node = ref.get("resource") == "nodes" and str(ref.get("name", "")).rpartition("-")[0] == name
        near = ref.get("namespace") == name or ref.get("name") == name or is_node
        bodies = [event.get("requestObject"), event.get("responseObject")]
        told = ref.get("resource") == "events" and name in json.dumps(bodies)
        if not (near or told) or ref.get("resource") in (
            "serviceaccounts",
            "configmaps",
            "endpoints",
            "endpointslices",
        ):
            continue
        user, agent = (event.pop("impersonatedUser", None) or event["user"])["username"], event.get("userAgent", "")
        answer = event.get("responseObject") or {}
        if user == "admin" and agent.startswith("kubelet"):
            node = (answer.get("spec") or {}).get("nodeName") or (ref.get("name") if is_node else f"{name}-1")
            user = f"system:node:{node}"
        for key in ("sourceIPs", "auditID", "requestURI", "annotations", "authenticationMetadata"):
            event.pop(key, None)
        event["user"] = {"username": user}
        event["userAgent"] = agent.partition(" (")[0]
        if answer:
            head = {"kind": answer.get("kind"), "apiVersion": answer.get("apiVersion")}
            kept = {} if answer.get("kind") == "Status" else _trimmed(codec.convert(answer, Seen))
            event["responseObject"] = {**head, **kept}
        sent = event.pop("requestObject", None) or {}
        if ref.get("resource") == "events":
            form = EventsV1Event if ref.get("apiGroup") == "events.k8s.io" else CoreV1Event
            event.pop("responseObject", None)
            if event["verb"] == "create":
                event["requestObject"] = _trimmed(codec.convert(sent, form))
            elif answer:
                event["responseObject"] = _trimmed(codec.convert(answer, form))
        elif ref.get("subresource") == "binding":
            event["requestObject"] = {"target": sent.get("target")}
        elif event["verb"] == "create" and sent and not ref.get("subresource"):
            event["requestObject"] = _trimmed(codec.convert(sent, Seen))
        found.append(event)
    return found


async def _record(url: str, folder: Path, audit: Path, assets: Path, some: Sequence[Incident]) -> None:
    clock = RealClock()
    found = await access.load(path=str(folder / "kubeconfig"), master="", clock=clock)
    transport = Authorized(Session(found, clock), found.credentials)
    made = simulated(transport, clock, random.Random(1), NodeOptions(count=0))
    async with replace(made, scheduler=lambda means: _NoScheduler()).running():
        recorder = Recorder(transport, clock, audit)  # type: ignore[arg-type]
        metrics = MetricsApi(recorder.usage)
        await asyncio.sleep(5)
        await metrics.start(recorder.client, folder)
        client = Client(transport, limiter=Unlimited(), user_agent="kubectl/v1.36.0", clock=clock)
        kit = Kit(assets, folder, client, clock, recorder)
        played = await asyncio.gather(*(kit.play(one) for one in some))
        PLACE.mkdir(exist_ok=True)
        for one, what in zip(some, played, strict=True):
            what["audited"] = audited(audit, one.name)
            body = gzip.compress(msgspec.json.encode(what), mtime=0)
            (PLACE / f"{one.name}.json.gz").write_bytes(body)
            print(f"{one.name}: {len(what['audited'])} events, {len(body)} bytes", flush=True)
        await metrics.stop()


def main(names: Sequence[str]) -> None:
    assets = Path(os.environ["KUBEBUILDER_ASSETS"])
    some = [one for one in INCIDENTS if not names or one.name in names]
    with real_cluster(assets, *_FLAGS, policy=_POLICY) as (url, folder, audit), Processes() as processes:
        config = yaml.safe_load((folder / "kubeconfig").read_text())
        config["users"][0]["user"]["as"] = "system:kube-scheduler"
        (folder / "scheduler").write_text(json.dumps(config))
        words = [f"{assets}/kube-scheduler", f"--kubeconfig={folder}/scheduler", "--leader-elect=false"]
        words += [f"--authentication-kubeconfig={folder}/kubeconfig"]
        words += [f"--authorization-kubeconfig={folder}/kubeconfig"]
        words += [f"--secure-port={free_port()}", f"--cert-dir={folder}/s"]
        processes.start(*words, log=folder / "scheduler.log")
        asyncio.run(_record(url, folder, audit, assets, some))


if __name__ == "__main__":
    main(sys.argv[1:])
