"""How long controllers hold the loop where many objects of one namespace meet: CPU time, in one process.

    python -m tests.bench.turns [--only services,owners,budgets] [--scale 1.0] [--long 20]

services: 10,000 pods and 1,000 Services, each of which selects ten of them; restart. owners: 3,000 ReplicaSets and 300
pods without an owner; restart. budgets: 200 pods and 20 budgets of 12,000 DoesNotExist terms each; restart, then one
label of one pod changes at a time. daemons: one DaemonSet on 5,000 nodes, jobs: one Job of 10,000 pods; a pod changes.
whole: 100,000 pods of 2,000 Deployments with a Service each on 5,000 nodes, all controllers; not among the usual cases.

The controllers run on an ordinary loop beside the API server of a sandbox, whose CPU time is taken off. ``cpu``: of the
controllers. ``turn``: the longest pass of the loop over its ready callbacks, for which all others waited. ``step``: the
longest single callback, and the task that it was. With --long, each callback of more than so many ms gets a line.
"""

import argparse
import asyncio
import gc
import json
import random
import sys
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterable
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

import psutil

from kcm_cli.api.resource import GVR
from kcm_cli.cluster.cluster import Cluster
from kcm_cli.cluster.controllers import Alone
from kcm_cli.component.clock import LoopClock
from kcm_cli.component.garbage import THRESHOLDS
from kcm_cli.manager.controller_map import CONTROLLERS
from kcm_cli.rest.transport import Around, Request, Response, Stream, Transport
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from kcm_cli.sandbox.transport import InProcessTransport
from tests.bench import objects
from tests.bench.objects import Doc
from tests.kit.controlling import configured
from tests.kit.embedded import ADMIN, EmbeddedServer

T = TypeVar("T")
JSON = {"content-type": "application/json"}
PATCH = {"content-type": "application/merge-patch+json"}
LASTING = ("--node-monitor-grace-period=1h", "--node-startup-grace-period=1h")
"""Nobody renews the nodes' Leases."""
RESTS_S = 30.0
DEPLOYMENTS, REPLICA_SETS = (GVR("apps", "v1", plural) for plural in ("deployments", "replicasets"))
NODES, SERVICES, PODS_GVR = (GVR("", "v1", plural) for plural in ("nodes", "services", "pods"))
QUIET_S, QUIET_CPU_S = 1.5, 0.01
"""All have settled when controllers and server take less CPU time than this in this time."""
PODS = "/api/v1/namespaces/crowd/pods"
NAMES = (
    *("endpoints", "endpointslice", "replicaset", "replicationcontroller", "deployment", "statefulset", "daemonset"),
    *("job", "disruption", "horizontal-pod-autoscaler", "resourcequota", "taint-eviction", "pod-garbage-collector"),
    *("ttl-after-finished", "ephemeral-volume", "persistentvolumeclaim-protection"),
)
CHOSEN = tuple(one for one in CONTROLLERS if one.name.removesuffix("-controller") in NAMES)


class Steps:
    """The CPU time of the steps and turns of a loop. What is ``aside`` counts for nobody."""

    def __init__(self, long_s: float = float("inf")) -> None:
        self.aside_s = 0.0
        self.long_s = long_s
        """Each step that is longer is told on standard error."""
        self.clear()

    def clear(self) -> None:
        self.total_s = self.turn_s = self.step_s = 0.0
        self.longest = ""

    def install(self, loop: Any) -> None:
        handles: Any = asyncio.Handle
        run, once = handles._run, loop._run_once

        def timed(handle: Any) -> None:
            aside, started = self.aside_s, time.thread_time()
            run(handle)
            took = time.thread_time() - started - (self.aside_s - aside)
            if took > self.step_s:
                self.step_s, self.longest = took, _name_of(handle)
            if took > self.long_s:
                sys.stderr.write(f"{took * 1e3:9.1f} ms  {_name_of(handle)}\n")

        def turned() -> None:
            aside, started = self.aside_s, time.thread_time()
            once()
            took = time.thread_time() - started - (self.aside_s - aside)
            self.total_s += took
            self.turn_s = max(self.turn_s, took)

        handles._run = timed
        loop._run_once = turned


def _name_of(handle: Any) -> str:
    owner = getattr(handle._callback, "__self__", None)
    if not isinstance(owner, asyncio.Task):
        return repr(handle._callback)[:60]
    work: Any = owner.get_coro()
    if not owner.get_name().startswith("Task-"):
        return owner.get_name()
    of = work.cr_frame.f_locals.get("self") if work.cr_frame is not None else None
    return f"{work.__qualname__} {getattr(of, 'name', '')}".strip()


class Aside(Awaitable[T]):
    """Awaits something, whose steps are aside."""

    def __init__(self, work: Awaitable[T], steps: Steps) -> None:
        self._work, self._steps = work, steps

    def __await__(self) -> Generator[Any, Any, T]:
        work: Any = self._work.__await__()
        error: BaseException | None = None
        while True:
            started = time.thread_time()
            try:
                suspended = next(work) if error is None else work.throw(error)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            finally:
                self._steps.aside_s += time.thread_time() - started
            error = None
            try:
                yield suspended
            except BaseException as thrown:  # noqa: BLE001  # a cancellation is the server's to handle
                error = thrown


class ServerAside(Around):
    """A transport whose server's work is aside."""

    def __init__(self, inner: Transport, steps: Steps) -> None:
        super().__init__(inner)
        self._steps = steps

    async def send(self, request: Request) -> Response:
        return await Aside(self._inner.send(request), self._steps)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        async with self._inner.stream(request) as stream, aclosing(self._aside(stream.chunks)) as chunks:
            yield Stream(stream.status, stream.headers, chunks)

    async def _aside(self, chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        try:
            while True:
                yield await Aside(anext(chunks), self._steps)
        except StopAsyncIteration:
            return


class Crowd:
    """A sandbox's API server, its objects, and the controllers on it."""

    def __init__(self, steps: Steps) -> None:
        self.steps, self._clock = steps, LoopClock()
        self.all = False
        """Whether all controllers run."""
        now = datetime.now(UTC)
        self._server = EmbeddedServer(self._clock, random.Random(1), Certificates.load(None, now))

    async def start(self) -> None:
        await self._server.start()
        await self.make("/api/v1/namespaces", [{"metadata": {"name": "crowd"}}])
        await self.make("/api/v1/nodes", [objects.node("n0")])
        await self.make("/api/v1/namespaces/crowd/serviceaccounts", [{"metadata": {"name": "default"}}])

    async def make(self, path: str, docs: Iterable[Doc]) -> None:
        """Create objects, with the status that they have, at once."""
        for number, doc in enumerate(docs):
            await self.send("POST", path, {key: value for key, value in doc.items() if key != "status"})
            if "status" in doc:
                await self.send("PATCH", f"{path}/{doc['metadata']['name']}/status", {"status": doc["status"]})
            if number % 10 == 0:
                await asyncio.sleep(0)

    async def send(self, method: str, path: str, doc: Doc) -> None:
        headers = PATCH if method == "PATCH" else JSON
        request = Request(method, path, headers=headers, body=json.dumps(doc).encode())
        answer = await Aside(self._server.transport().send(request), self.steps)
        assert answer.status < 300, answer.body

    async def names(self, path: str) -> list[str]:
        answer = await Aside(self._server.transport().send(Request("GET", path)), self.steps)
        return [item["metadata"]["name"] for item in json.loads(answer.body)["items"]]

    def clones(self, gvr: GVR, namespace: str, name: str, edits: Iterable[Callable[[Doc], None]]) -> None:
        """Write copies of a stored object, as edited, without the work of a request."""
        store = self._server.store
        stored = store.get(gvr, namespace, name)
        assert stored is not None
        for edit in edits:
            doc: Doc = stored.copy()
            doc["metadata"]["uid"] = str(uuid.uuid4())
            edit(doc)
            store.create(gvr, namespace, doc["metadata"]["name"], doc)

    def uid_of(self, gvr: GVR, name: str) -> str:
        stored = self._server.store.get(gvr, "crowd", name)
        assert stored is not None
        return str(stored.doc["metadata"]["uid"])  # type: ignore[index]

    @asynccontextmanager
    async def controllers(self) -> AsyncIterator[None]:
        transport = ServerAside(InProcessTransport(self._server.api, ADMIN), self.steps)
        controllers = Alone(config=configured(), only=frozenset(one.name for one in CHOSEN))
        if self.all:
            controllers = Alone(config=configured(*LASTING), served=None)
        cluster: Cluster[Any] = Cluster(
            clock=self._clock, rng=random.Random(3), connect=lambda component: transport, controllers=controllers
        )
        async with cluster.running() as running:
            yield
            assert running.code is None and not running.failed

    async def settled(self) -> None:
        while True:
            before = self.steps.total_s + self.steps.aside_s
            await asyncio.sleep(QUIET_S)
            if self.steps.total_s + self.steps.aside_s - before < QUIET_CPU_S:
                return


def pod(number: int, app: str) -> Doc:
    doc = objects.pod(f"p{number}", "n0")
    doc["metadata"]["labels"] = {"app": app}
    return {**doc, **objects.running(number)}


async def services(crowd: Crowd, scale: float) -> None:
    count = round(1_000 * scale)
    docs = [objects.service(f"s{number}") for number in range(count)]
    for number, doc in enumerate(docs):
        doc["spec"]["selector"] = {"app": f"a{number}"}
    await crowd.make(PODS, (pod(number, f"a{number % count}") for number in range(count * 10)))
    await crowd.make("/api/v1/namespaces/crowd/services", docs)
    await _restart(crowd, f"services: {count * 10} pods, {count} Services")


async def owners(crowd: Crowd, scale: float) -> None:
    sets, pods = round(3_000 * scale), round(300 * scale)
    docs = (objects.workload("ReplicaSet", f"r{number}", replicas=0) for number in range(sets))
    await crowd.make("/apis/apps/v1/namespaces/crowd/replicasets", docs)
    await crowd.make(PODS, (pod(number, "nobody") for number in range(pods)))
    await _restart(crowd, f"owners: {sets} ReplicaSets, {pods} bare pods")


async def budgets(crowd: Crowd, scale: float) -> None:
    count, terms = max(1, round(20 * scale)), round(12_000 * scale)
    barred = [{"key": f"absent-{number}", "operator": "DoesNotExist"} for number in range(terms)]
    spec = {"minAvailable": 1, "selector": {"matchExpressions": barred}}
    docs = ({"metadata": {"name": f"b{number}"}, "spec": _other(spec, number)} for number in range(count))
    await crowd.make(PODS, (pod(number, "web") for number in range(round(200 * scale))))
    await crowd.make("/apis/policy/v1/namespaces/crowd/poddisruptionbudgets", docs)
    title = f"budgets: {round(200 * scale)} pods, {count} budgets of {terms} terms"
    async with _restarted(crowd, title):
        for label in ("tick", "absent-1"):
            crowd.steps.clear()
            for number in range(10):
                path = f"{PODS}/p{number}"
                await crowd.send("PATCH", path, {"metadata": {"labels": {label: str(number)}}})
                await asyncio.sleep(0.05)
            await crowd.settled()
            said(f"{title}: label {label}, each of 10", crowd.steps, 10)


async def daemons(crowd: Crowd, scale: float) -> None:
    count = round(5_000 * scale)
    await crowd.make("/api/v1/nodes", (objects.node(f"d{number}") for number in range(count)))
    doc = objects.workload("DaemonSet", "agent")
    doc["spec"]["template"]["spec"]["tolerations"] = [{"operator": "Exists"}]  # nobody says that the nodes are ready
    await crowd.make("/apis/apps/v1/namespaces/crowd/daemonsets", [doc])
    title = f"daemons: {count} nodes"
    async with _restarted(crowd, title):
        names = await crowd.names(PODS)
        await _touched(crowd, names[:10], f"{title}: annotation of a pod")


async def jobs(crowd: Crowd, scale: float) -> None:
    count = round(10_000 * scale)
    doc = objects.job("batch")
    doc["spec"] |= {"parallelism": count, "completions": count}
    await crowd.make("/apis/batch/v1/namespaces/crowd/jobs", [doc])
    title = f"jobs: {count} pods of one Job"
    async with _restarted(crowd, title):
        names = await crowd.names(PODS)
        await _touched(crowd, names[:10], f"{title}: annotation of a pod")


async def whole(crowd: Crowd, scale: float) -> None:
    owners, nodes, each = round(2_000 * scale), round(5_000 * scale), 50
    crowd.all = True
    apps = "/apis/apps/v1/namespaces/crowd"
    await crowd.make("/api/v1/nodes", [{**objects.node("d"), **objects.NODE_READY}])
    await crowd.make(f"{apps}/deployments", [objects.deployment("d", each)])
    await crowd.make("/api/v1/namespaces/crowd/services", [objects.service("d")])
    async with crowd.controllers():  # their marks and hashes, on one of each
        await crowd.settled()
    (replica_set,) = await crowd.names(f"{apps}/replicasets")
    pods = await crowd.names(PODS)
    for number, pod in enumerate(pods):
        await crowd.send(
            "POST", f"{PODS}/{pod}/binding", {"metadata": {"name": pod}, "target": {"kind": "Node", "name": "d"}}
        )
        await crowd.send("PATCH", f"{PODS}/{pod}/status", objects.running(number))
    async with crowd.controllers():
        await crowd.settled()

    def named(number: int) -> Callable[[Doc], None]:
        return lambda doc: _put(doc, metadata={"name": f"d{number}"})

    def labelled(number: int, key: str) -> Callable[[Doc], None]:
        def edit(doc: Doc) -> None:
            text = json.dumps(doc).replace('"app": "d"', f'"app": "d{number}"')
            doc |= json.loads(text)
            _put(doc, metadata={"name": f"d{number}"})
            if key:
                owner = doc["metadata"]["ownerReferences"][0]
                owner |= {"name": f"d{number}", "uid": crowd.uid_of(DEPLOYMENTS, f"d{number}")}

        return edit

    def selecting(number: int) -> Callable[[Doc], None]:
        address = f"10.96.{number // 250 + 1}.{number % 250 + 1}"
        spec = {"selector": {"app": f"d{number}"}, "clusterIP": address, "clusterIPs": [address]}
        return lambda doc: _put(doc, metadata={"name": f"d{number}"}, spec=spec)

    def placed(number: int, replica: int) -> Callable[[Doc], None]:
        uid = crowd.uid_of(REPLICA_SETS, f"d{number}")

        def edit(doc: Doc) -> None:
            place = number * each + replica
            address = f"10.{100 + (place >> 16)}.{place >> 8 & 255}.{place & 255}"
            meta = doc["metadata"]
            meta["name"] = f"d{number}-{replica}"
            meta["labels"] = {**meta["labels"], "app": f"d{number}"}
            meta["ownerReferences"][0] |= {"name": f"d{number}", "uid": uid}
            doc["spec"]["nodeName"] = f"d{place % nodes}"
            doc["status"] |= {"podIP": address, "podIPs": [{"ip": address}]}

        return edit

    crowd.clones(NODES, "", "d", map(named, range(nodes)))
    crowd.clones(DEPLOYMENTS, "crowd", "d", (labelled(number, "") for number in range(owners)))
    crowd.clones(REPLICA_SETS, "crowd", replica_set, (labelled(number, "owner") for number in range(owners)))
    crowd.clones(SERVICES, "crowd", "d", map(selecting, range(owners)))
    crowd.clones(PODS_GVR, "crowd", pods[0], (placed(number, one) for number in range(owners) for one in range(each)))
    title = f"whole: {owners * each} pods, {nodes} nodes, {owners} Services"
    async with _restarted(crowd, title):
        crowd.steps.clear()
        before = psutil.Process().memory_info().rss
        await asyncio.sleep(RESTS_S)
        said(f"{title}: {RESTS_S:.0f} s of rest", crowd.steps)
        print(f"{before >> 20} MiB with the API server's objects", flush=True)


def _put(doc: Doc, **parts: Doc) -> None:
    for key, part in parts.items():
        doc[key] = {**doc.get(key, {}), **part}


async def _touched(crowd: Crowd, names: Iterable[str], title: str) -> None:
    """Each of these pods changes, one after the other has been dealt with."""
    await asyncio.sleep(0)
    crowd.steps.clear()
    for number, name in enumerate(names, 1):
        await crowd.send("PATCH", f"{PODS}/{name}", {"metadata": {"annotations": {"tick": str(number)}}})
        await asyncio.sleep(0.7)
    said(f"{title}, each of {number}", crowd.steps, number)


def _other(spec: Doc, number: int) -> Doc:
    """Budgets that nobody has made from one template differ."""
    terms = [*spec["selector"]["matchExpressions"], {"key": f"other-{number}", "operator": "DoesNotExist"}]
    return {**spec, "selector": {"matchExpressions": terms}}


async def _restart(crowd: Crowd, title: str) -> None:
    async with _restarted(crowd, title):
        pass


@asynccontextmanager
async def _restarted(crowd: Crowd, title: str) -> AsyncIterator[None]:
    gc.collect()
    gc.freeze()
    await asyncio.sleep(0)
    crowd.steps.clear()
    async with crowd.controllers():
        await crowd.settled()
        said(f"{title}: first start", crowd.steps)
    gc.collect()
    await asyncio.sleep(0)
    crowd.steps.clear()
    async with crowd.controllers():
        await crowd.settled()
        said(f"{title}: restart", crowd.steps)
        yield


def said(title: str, steps: Steps, parts: int = 1) -> None:
    figures = f"{steps.total_s / parts * 1e3:9.1f} {steps.turn_s * 1e3:9.1f} {steps.step_s * 1e3:9.1f}"
    print(f"{title:68} {figures}  {steps.longest}", flush=True)


CASES: dict[str, Callable[[Crowd, float], Awaitable[None]]] = {
    "services": services,
    "owners": owners,
    "budgets": budgets,
    "daemons": daemons,
    "jobs": jobs,
    "whole": whole,
}
USUAL = [name for name in CASES if name != "whole"]


async def measure(cases: list[str], scale: float, long_s: float) -> None:
    steps = Steps(long_s)
    steps.install(asyncio.get_running_loop())
    for descriptor in CHOSEN:
        descriptor.load()
    gc.set_threshold(*THRESHOLDS)
    for name in cases:
        crowd = Crowd(steps)
        await crowd.start()
        await CASES[name](crowd, scale)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(USUAL))
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--long", type=float, default=float("inf"), metavar="MS", help="tell each callback above this")
    args = parser.parse_args()
    cases = [name for name in args.only.split(",") if name]
    for name in cases:
        if name not in CASES:
            parser.error(f"--only: {name!r} is none of {', '.join(CASES)}")
    print(f"{'':68} {'cpu ms':>9} {'turn ms':>9} {'step ms':>9}  longest step")
    asyncio.run(measure(cases, args.scale, args.long / 1e3))


if __name__ == "__main__":
    main()
