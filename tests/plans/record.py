"""Records the scenarios: the Go manager on a real API server, kubelets and scheduler of the sandbox as its clients.

    KUBEBUILDER_ASSETS=... python -m tests.plans.record [--again] [NAME...]

For each scenario tests/recorded/plans gets NAME.kcm, the cluster before the change, and NAME.json, what the manager's
controllers wrote after it, from the API server's audit log. --again: NAME.2.json, NAME.3.json and so on, another run of
a scenario in which controllers race.
"""

import asyncio
import json
import os
import random
import re
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from kcm_cli.api.resource import Resource
from kcm_cli.component.clock import LoopClock
from kcm_cli.machinery import codec
from kcm_cli.machinery.meta import PartialObject
from kcm_cli.machinery.times import format_time
from kcm_cli.plan import (
    AddNode,
    Apply,
    Change,
    Delete,
    Drain,
    FailNode,
    Metric,
    RemoveNode,
    Scale,
    SetImage,
    Snapshot,
    Target,
    save,
)
from kcm_cli.plan.applying import node_like
from kcm_cli.plan.collect import collect
from kcm_cli.plan.snapshot import Item
from kcm_cli.planning.actions import APPLY, MERGE, STRATEGIC_MERGE
from kcm_cli.rest import access
from kcm_cli.rest.authorized import Authorized
from kcm_cli.rest.client import Client
from kcm_cli.rest.discovery import discover
from kcm_cli.rest.errors import ApiError, NotFound, TooManyRequests
from kcm_cli.rest.listing import read_page
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.rest.read_only import ReadOnly
from kcm_cli.rest.served_resources import Discovery
from kcm_cli.rest.session import Session
from kcm_cli.rest.transport import Request, Transport
from kcm_cli.sandbox.nodes import commands, shape
from kcm_cli.sandbox.nodes.agents import NodeOptions
from kcm_cli.sandbox.views import NODES, PODS, SimulatedPod
from tests.kit.places import ROOT
from tests.kit.servers import real_cluster
from tests.kit.space import POOL, Tree
from tests.kit.world import simulated
from tests.plans.agreement import line_of, recordings
from tests.plans.metrics_api import MetricsApi
from tests.plans.scenarios import Scenario, scenarios

PLACE = ROOT / "tests" / "recorded" / "plans"
BATCH = 16
_REQUESTED = 100
"""Thousandths of a CPU that a pod of ``Space.template`` requests."""
_USERS = "system:serviceaccount:kube-system:"
_SMALL = ("priorityclasses", "storageclasses", "csidrivers")


class Recorder:
    """One cluster, on which batches of scenarios are played."""

    def __init__(self, transport: Transport, clock: LoopClock, audit: Path, *, again: bool = False) -> None:
        self.transport = transport
        self.client = Client(transport, limiter=Unlimited(), user_agent="kubectl/v1.36.0", clock=clock)
        self.clock = clock
        self.audit = audit
        self.again = again
        self.known = Discovery()
        self.loads: dict[tuple[str, str], int] = {}

    async def batch(self, some: Sequence[Scenario]) -> None:
        self.known = await discover(self.client)
        await asyncio.gather(*(self.setup(one) for one in some))
        print("set up", flush=True)
        await self.clock.sleep(max(one.ready_s for one in some) + 40)
        await asyncio.gather(*(self.play(one) for one in some))

    async def setup(self, one: Scenario) -> None:
        await self.send(Apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": one.name}}), "")
        for number, zone in enumerate(one.nodes, 1):
            labels = {POOL: one.name, "topology.kubernetes.io/zone": f"{one.name}-{zone}"}
            notes = {shape.SIMULATED: "true", shape.CAPACITY: "cpu=4,memory=16Gi"}
            metadata: dict[str, object] = {"name": f"{one.name}-{number}", "labels": labels, "annotations": notes}
            await self.client.create(NODES, "", {"apiVersion": "v1", "kind": "Node", "metadata": metadata})
        await self.clock.sleep(5)
        for name, total in one.load:
            self.loads[one.name, name] = total
        seen: set[str] = set()
        for doc in one.setup:
            key = f"{doc['kind']}/{doc['metadata']['name']}"
            if key in seen:
                await self.clock.sleep(20)  # a second version of it: the first has settled
            seen.add(key)
            await self.send(Apply(doc), one.name)

    async def play(self, one: Scenario) -> None:
        if not self.again:
            reader = Client(ReadOnly(self.transport), limiter=Unlimited(), user_agent="plan", clock=self.clock)
            whole = await collect(reader, self.clock)
            save(reduced(whole, one.name), PLACE / f"{one.name}.kcm")
        started = datetime.now(UTC)
        tasks = [asyncio.ensure_future(self.act(change, one.name)) for change in one.changes]
        await self.clock.sleep(one.watched_s)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for task in tasks:
            if not task.cancelled() and (error := task.exception()) is not None:
                print(f"{one.name}: {error!r}", flush=True)
        ended = datetime.now(UTC)
        writes = Counter(line_of(*entry) for entry in self.written(one.name, started, ended))
        lines = [[*line, count] for line, count in sorted(writes.items())]
        number = f".{len(recordings(one.name)) + 1}" if self.again else ""
        (PLACE / f"{one.name}{number}.json").write_text("\n".join(["[", ",\n".join(map(json.dumps, lines)), "]\n"]))
        print(f"{one.name}: {sum(writes.values())} writes, {len(writes)} kinds", flush=True)

    def written(self, space: str, started: datetime, ended: datetime) -> Iterator[tuple[str, ...]]:
        """What controllers wrote in a scenario's namespace and on its nodes."""
        for text in self.audit.read_text().splitlines():
            event = json.loads(text)
            user = event["user"]["username"].removeprefix(_USERS)
            at = datetime.fromisoformat(event["requestReceivedTimestamp"])
            ref = event.get("objectRef") or {}
            if not started <= at <= ended or user == "namespace" or not ref.get("resource"):
                continue
            answer = event.get("responseObject") or {}
            if (event.get("responseStatus") or {}).get("code") == 409:
                continue  # it is tried again; how often depends on the moment
            if space in (ref.get("namespace"), ref.get("name")) or _belongs(space, ref, answer):
                yield (
                    user,
                    event["verb"],
                    ref.get("apiGroup", ""),
                    ref["resource"],
                    ref.get("subresource", ""),
                    _owner(answer),
                    ref.get("name") or (answer.get("metadata") or {}).get("name", ""),
                )

    # -- what is done

    async def act(self, change: Change, space: str) -> None:
        match change:
            case Drain(node=node):
                await self.drain(node)
            case FailNode(node=node):
                await commands.fail(self.client, node)
            case RemoveNode(node=node):
                await commands.remove(self.client, node)
            case AddNode(like=like, count=count):
                for number in range(1, count + 1):
                    doc = node_like(await self.client.get_doc(NODES, "", like), f"{like}-copy-{number}", "")
                    doc["metadata"]["annotations"] = {shape.SIMULATED: "true", shape.CAPACITY: "cpu=4,memory=16Gi"}  # type: ignore[index]
                    doc.pop("status")
                    await self.client.create(NODES, "", doc)
            case _:
                await self.send(change, space)

    async def send(self, change: Change, space: str) -> None:
        client = self.client
        match change:
            case Apply(doc=doc):
                metadata: Any = doc["metadata"]
                group, _, version = str(doc["apiVersion"]).rpartition("/")
                served = self.known.find_kind(group, str(doc["kind"]), version)
                assert served is not None, doc["kind"]
                path = served.gvr.path(metadata.get("namespace", space) if served.namespaced else "", metadata["name"])
                query = (("fieldManager", "kubectl"),)
                for _ in range(20):
                    try:
                        await client.call(Request("PATCH", path, query, {"content-type": APPLY}, codec.encode(doc)))
                        return
                    except ApiError as error:  # a namespace has its service account a moment later
                        if error.status != 403:
                            raise
                        await self.clock.sleep(0.5)
            case SetImage(target=target, image=image):
                body = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}}
                await client.patch(self.resource(target), space, target.name, body, content_type=STRATEGIC_MERGE)  # type: ignore[arg-type]
            case Scale(target=target, replicas=replicas):
                patch: dict[str, object] = {"spec": {"replicas": replicas}}
                await client.patch(
                    self.resource(target), space, target.name, patch, content_type=MERGE, subresource="scale"
                )
            case Delete(target=target):
                resource = self.resource(target)
                await client.delete(
                    resource, space if resource.namespaced else "", target.name, propagation=change.propagation
                )
            case Metric(name=name, percent=percent):
                assert percent is not None
                pods = [pod async for pod in self.pods(space, f"app={name}")]
                self.loads[space, name] = round(len(pods) * _REQUESTED * percent / 100)
            case _:
                raise AssertionError(change)

    async def pods(self, space: str, selector: str) -> AsyncIterator[SimulatedPod]:
        """Those that run."""
        body = await self.client.list_page(PODS, space, label_selector=selector)
        for raw in read_page(body).items or ():
            pod = codec.decode(raw, SimulatedPod)
            if pod.status.phase == "Running" and not pod.deleting:
                yield pod

    async def usage(self, space: str, selector: str) -> list[Tree]:
        """What metrics.k8s.io says of the pods of a namespace: each load is shared by those that run."""
        items: list[Tree] = []
        for (namespace, name), total in self.loads.items():
            if namespace != space:
                continue
            found = [pod async for pod in self.pods(space, f"app={name}")]
            wanted = {pod.name async for pod in self.pods(space, selector)}
            for pod in found:
                if pod.name in wanted:
                    metadata = {"name": pod.name, "namespace": space, "labels": dict(pod.labels)}
                    usage = {"cpu": f"{round(total * 1e6 / len(found))}n"}
                    containers = [{"name": "c", "usage": usage}]
                    now = format_time(self.clock.now())
                    items.append({"metadata": metadata, "timestamp": now, "window": "10s", "containers": containers})
        return items

    def resource(self, target: Target) -> Resource[PartialObject]:
        served = self.known.named(target.kind)
        assert served is not None
        return served.partial()

    async def drain(self, node: str) -> None:
        await self.client.patch(NODES, "", node, {"spec": {"unschedulable": True}}, content_type=STRATEGIC_MERGE)
        done: set[str] = set()
        while True:
            body = await self.client.list_page(PODS, "", field_selector=f"spec.nodeName={node}")
            pods = [codec.decode(raw, SimulatedPod) for raw in read_page(body).items or ()]
            for pod in pods:
                if any(ref.kind == "DaemonSet" for ref in pod.metadata.owner_references) or pod.uid in done:
                    continue
                eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod.name}}
                path = PODS.gvr.path(pod.namespace, pod.name, "eviction")
                headers = {"content-type": "application/json"}
                request = Request("POST", path, (), headers, codec.encode(eviction))
                try:
                    await self.client.call(request)
                except TooManyRequests:
                    continue
                except NotFound:
                    pass
                done.add(pod.uid)
            await self.clock.sleep(5)


def reduced(snapshot: Snapshot, space: str) -> Snapshot:
    """The part of a cluster that one scenario lives in."""
    collections = {}
    for gvr, one in snapshot.collections.items():
        kept = tuple(item for item in one.items if _is_of(space, gvr.plural, one.namespaced, item))
        collections[gvr] = replace(one, items=kept)
    return replace(snapshot, collections=collections, context="")


def _is_of(space: str, plural: str, namespaced: bool, item: Item) -> bool:
    spec: Any = item.doc.get("spec") or {}
    match plural:
        case "namespaces":
            return item.name == space
        case "nodes" | "leases" | "csinodes":
            return item.name.rpartition("-")[0] == space
        case "persistentvolumes":
            return (spec.get("claimRef") or {}).get("namespace") == space
        case "volumeattachments":
            return str(spec.get("nodeName")).rpartition("-")[0] == space
        case _:
            return item.namespace == space if namespaced else plural in _SMALL


def _belongs(space: str, ref: dict[str, Any], answer: dict[str, Any]) -> bool:
    if ref["resource"] in ("nodes", "csinodes"):
        return re.fullmatch(rf"{space}-\d(-copy-\d)?", str(ref.get("name", ""))) is not None
    if ref["resource"] == "persistentvolumes":
        return ((answer.get("spec") or {}).get("claimRef") or {}).get("namespace") == space
    if ref["resource"] == "volumeattachments":
        return str((answer.get("spec") or {}).get("nodeName", "")).rpartition("-")[0] == space
    return ref.get("namespace") == f"{space}-more" or ref.get("name") == f"{space}-more"


def _owner(answer: dict[str, Any]) -> str:
    refs = (answer.get("metadata") or {}).get("ownerReferences") or ()
    chosen = next((ref for ref in refs if ref.get("controller")), refs[0] if refs else None)
    return f"{chosen['kind']}/{chosen['name']}" if chosen else ""


async def _run(url: str, folder: Path, audit: Path, some: Sequence[Scenario], *, again: bool) -> None:
    clock = LoopClock()
    found = await access.load(path=str(folder / "kubeconfig"), master="", clock=clock)
    transport = Authorized(Session(found, clock), found.credentials)
    await clock.sleep(5)  # for the namespaces that the API server makes
    async with simulated(transport, clock, random.Random(1), NodeOptions(0)).running():
        recorder = Recorder(transport, clock, audit, again=again)
        metrics = MetricsApi(recorder.usage)
        await metrics.start(recorder.client, folder)
        for at in range(0, len(some), BATCH):
            await recorder.batch(some[at : at + BATCH])
        await metrics.stop()


def main(arguments: Sequence[str]) -> None:
    names, again = [word for word in arguments if word != "--again"], "--again" in arguments
    some = [one for one in scenarios() if not names or one.name in names]
    some.sort(key=lambda one: one.watched_s)
    PLACE.mkdir(parents=True, exist_ok=True)
    with real_cluster(Path(os.environ["KUBEBUILDER_ASSETS"])) as (url, folder, audit):
        asyncio.run(_run(url, folder, audit, some, again=again))


if __name__ == "__main__":
    main(sys.argv[1:])
