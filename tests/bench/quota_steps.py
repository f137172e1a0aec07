"""What quotas cost a change, and how long they hold the loop: CPU time of each step of the loop, nothing else.

    python -m tests.bench.quota_steps [--pods 10000] [--quotas 10] [--churn 50] [--seconds 60] [--no-admission]

The resourcequota-controller runs in this process, on virtual time. The API server is played: its watches bring what a
real one would send, made beforehand, and the cost of playing it is taken off. One pod that is replaced is a change: six
events (made, bound, running; deleted, ended, gone), and one of each quota that admission has charged. Two lines:
without quotas, and with them. ``core``: the share of a core at this rate. ``step_max_ms``: the longest single step of
the loop, once the first lists are taken in.
"""

import argparse
import asyncio
import gc
import json
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from kcm_cli.cluster.cluster import Cluster
from kcm_cli.cluster.controllers import Alone
from kcm_cli.component import virtual
from kcm_cli.component.clock import LoopClock
from kcm_cli.machinery.quantity import make, parse
from kcm_cli.rest.client import Client
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.rest.transport import Request, Response, Stream
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from tests.bench.quota import busy_pod, quota
from tests.kit.controlling import configured
from tests.kit.embedded import EmbeddedServer

NAMESPACE = "quotas"
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
TICK_S = 0.02
JSON = {"content-type": "application/json"}


class Steps:
    """The CPU time of the steps of the loop. What is ``aside`` counts for nobody."""

    def __init__(self) -> None:
        self.total_s = self.longest_s = self._aside_s = 0.0

    def clear(self) -> None:
        self.total_s = self.longest_s = 0.0

    def aside(self, work: Callable[..., Any], *args: Any) -> Any:
        started = time.thread_time()
        try:
            return work(*args)
        finally:
            self._aside_s += time.thread_time() - started

    def install(self) -> None:
        handles: Any = asyncio.Handle
        run = handles._run

        def timed(handle: asyncio.Handle) -> None:
            self._aside_s, started = 0.0, time.thread_time()
            run(handle)
            took = time.thread_time() - started - self._aside_s
            self.total_s += took
            self.longest_s = max(self.longest_s, took)

        handles._run = timed


class Played:
    """An API server of which only pods and quotas change."""

    def __init__(self, server: EmbeddedServer, steps: Steps) -> None:
        self._real, self._steps = server.transport(), steps
        self._answers: dict[tuple[str, Any], Response] = {}
        self._streams: dict[str, asyncio.Queue[bytes]] = {}
        self.version = 1_000_000
        self.pod: dict[str, bytes] = {}
        self.pods: list[str] = []
        self.quotas: dict[str, dict[str, Any]] = {}
        self.writes = 0

    async def send(self, request: Request) -> Response:
        if request.method == "PUT":
            return self._steps.aside(self._put, request)  # type: ignore[no-any-return]
        known = self._answers.get((request.path, request.query))
        if known is None:
            known = self._answers[request.path, request.query] = await self._real.send(request)
        return known

    def _put(self, request: Request) -> Response:
        sent = json.loads(request.body)
        name = sent["metadata"]["name"]
        held = self.quotas[name]
        if sent["metadata"]["resourceVersion"] != held["metadata"]["resourceVersion"]:
            status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Conflict", "code": 409}
            return Response(409, JSON, json.dumps(status).encode())
        self.writes += 1
        held["status"] = sent["status"]
        return Response(200, JSON, self._changed(held))

    def _changed(self, held: dict[str, Any]) -> bytes:
        self.version += 1
        held["metadata"]["resourceVersion"] = str(self.version)
        body = json.dumps(held).encode()
        self.tell("resourcequotas", b"MODIFIED", body)
        return body

    def tell(self, plural: str, type_: bytes, body: bytes) -> None:
        if plural in self._streams:
            self._streams[plural].put_nowait(b'{"type":"%s","object":%s}\n' % (type_, body))

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        plural = request.path.rpartition("/")[2]
        self._streams[plural] = asyncio.Queue()
        yield Stream(200, JSON, self._chunks(plural))

    async def _chunks(self, plural: str) -> AsyncIterator[bytes]:
        queue = self._streams[plural]
        for body in self._steps.aside(lambda: list(self._initial(plural))):
            yield b'{"type":"ADDED","object":%s}\n' % body
        metadata = {"resourceVersion": str(self.version), "annotations": {"k8s.io/initial-events-end": "true"}}
        yield b'{"type":"BOOKMARK","object":%s}\n' % json.dumps({"metadata": metadata}).encode()
        while True:
            chunk = await queue.get()
            while not queue.empty():
                chunk += queue.get_nowait()
            yield chunk

    def _initial(self, plural: str) -> Iterator[bytes]:
        if plural == "pods":
            yield from (self.body("running", name) for name in self.pods)
        if plural == "resourcequotas":
            yield from (json.dumps(one).encode() for one in self.quotas.values())

    def body(self, state: str, name: str) -> bytes:
        self.version += 1
        return self.pod[state].replace(b"@name", name.encode()).replace(b'"@version"', b'"%d"' % self.version)

    async def close(self) -> None:
        """Nothing is open."""

    # -- what happens

    def replace(self, number: int, *, admission: bool) -> None:
        """One pod goes, another one comes."""
        gone, new = self.pods.pop(0), f"n{number}"
        self.pods.append(new)
        for state, type_ in (("deleting", b"MODIFIED"), ("ended", b"MODIFIED"), ("ended", b"DELETED")):
            self.tell("pods", type_, self.body(state, gone))
        for state, type_ in (("new", b"ADDED"), ("bound", b"MODIFIED"), ("running", b"MODIFIED")):
            self.tell("pods", type_, self.body(state, new))
        for held in self.quotas.values() if admission else ():
            used = held["status"].get("used")
            if used:
                used["pods"] = used["count/pods"] = str(parse(used["pods"]) + make(1))
            self._changed(held)


async def prepare(played: Played, server: EmbeddedServer, clock: LoopClock, pods: int) -> None:
    """Read off a real pod what those of the played server look like."""
    client = Client(server.transport(), limiter=Unlimited(), user_agent="bench", clock=clock)

    async def post(path: str, doc: dict[str, Any]) -> dict[str, Any]:
        answer = await client.raw(Request("POST", path, headers=JSON, body=json.dumps(doc).encode()))
        assert answer.status == 201, answer.body
        return json.loads(answer.body)  # type: ignore[no-any-return]

    await post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    base = f"/api/v1/namespaces/{NAMESPACE}"
    await post(f"{base}/serviceaccounts", {"metadata": {"name": "default"}})
    doc = await post(f"{base}/pods", busy_pod("sample"))
    doc["metadata"] |= {"name": "@name", "uid": "uid-@name", "resourceVersion": "@version"}
    times = {"creationTimestamp": "2026-01-01T00:00:00Z"}
    doc["metadata"] |= times
    new = {**doc, "spec": {k: v for k, v in doc["spec"].items() if k != "nodeName"}}
    started = {"conditions": [{"type": "Ready", "status": "True"}], "phase": "Running", "podIP": "10.0.0.1"}
    going = {**doc["metadata"], "deletionTimestamp": "2026-01-01T01:00:00Z", "deletionGracePeriodSeconds": 30}
    running = {**doc, "status": {**doc["status"], **started}}
    deleting = {**running, "metadata": going}
    ended = {**deleting, "status": {**running["status"], "phase": "Succeeded"}}
    states = {"new": new, "bound": doc, "running": running, "deleting": deleting, "ended": ended}
    played.pod = {state: json.dumps(one).encode() for state, one in states.items()}
    played.pods = [f"p{number}" for number in range(pods)]


async def measure(args: argparse.Namespace, quotas: int, steps: Steps) -> dict[str, Any]:
    clock = LoopClock(EPOCH)
    server = EmbeddedServer(clock, random.Random(1), Certificates.load(None, EPOCH))
    clock.now()
    await server.start()
    played = Played(server, steps)
    await prepare(played, server, clock, args.pods)
    gc.collect()
    for number in range(quotas):
        metadata = {"name": f"q{number}", "namespace": NAMESPACE, "uid": f"u{number}", "resourceVersion": "1"}
        doc = quota(f"q{number}")
        played.quotas[f"q{number}"] = {**doc, "metadata": {**doc["metadata"], **metadata}, "status": {}}
    await clock.sleep(TICK_S)
    steps.clear()
    controllers = Alone(config=configured(), only=frozenset(("resourcequota-controller",)))
    cluster: Cluster[Any] = Cluster(
        clock=clock, rng=random.Random(3), connect=lambda component: played, controllers=controllers
    )
    async with cluster.running():
        return await _measured(args, played, clock, steps, quotas)


async def _measured(
    args: argparse.Namespace, played: Played, clock: LoopClock, steps: Steps, quotas: int
) -> dict[str, Any]:
    await clock.sleep(30)
    first_s, at_start_s = steps.total_s, steps.longest_s
    writes = played.writes
    gc.collect()
    await clock.sleep(TICK_S)
    steps.clear()
    count = 0
    for _ in range(int(args.seconds / TICK_S)):
        for _ in range(round(args.churn * TICK_S)):
            count += 1
            steps.aside(lambda: played.replace(count, admission=args.admission))  # noqa: B023
        await clock.sleep(TICK_S)
    line = {
        "quotas": quotas,
        "pods": args.pods,
        "changes": count,
        "us_per_change": round(steps.total_s / count * 1e6, 1),
        "core": round(steps.total_s / args.seconds, 4),
        "step_max_ms": round(steps.longest_s * 1e3, 2),
        "writes": played.writes - writes,
        "start_cpu_s": round(first_s, 2),
        "start_step_max_ms": round(at_start_s * 1e3, 1),
    }
    await clock.sleep(10)
    for held in played.quotas.values():
        assert parse(held["status"]["used"]["pods"]) == make(args.pods), held["status"]
    return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--quotas", type=int, default=10)
    parser.add_argument("--churn", type=float, default=50.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--admission", action=argparse.BooleanOptionalAction, default=True)
    args = parser.parse_args()
    steps = Steps()
    steps.install()
    for quotas in (0, args.quotas):
        steps.clear()
        print(json.dumps(virtual.run(measure(args, quotas, steps))), flush=True)


if __name__ == "__main__":
    main()
