"""A LeaseCandidate against an API server on virtual time."""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from kcm_cli.component.clock import LoopClock
from kcm_cli.component.version import RELEASE, EffectiveVersion, Version
from kcm_cli.machinery.times import format_micro_time
from kcm_cli.manager.candidate import RENEW_S, Candidate
from kcm_cli.rest.transport import Request, Response, Stream
from tests.kit.faults import Answering


@dataclass
class Server(Answering):
    """Holds one LeaseCandidate and sends its changes to watches."""

    doc: dict[str, Any] | None = None
    version: int = 0
    renewals: list[float] = field(default_factory=list)
    events: "asyncio.Queue[bytes]" = field(default_factory=asyncio.Queue)
    watched: list[Request] = field(default_factory=list)

    def store(self, doc: dict[str, Any]) -> dict[str, Any]:
        kind = "ADDED" if self.doc is None else "MODIFIED"
        self.version += 1
        doc["metadata"] = {**doc["metadata"], "resourceVersion": str(self.version), "uid": "u"}
        self.doc = doc
        self.events.put_nowait(json.dumps({"type": kind, "object": doc}).encode() + b"\n")
        return doc

    async def send(self, request: Request) -> Response:
        doc = json.loads(request.body)
        if request.method == "PUT" and doc["metadata"]["resourceVersion"] != str(self.version):
            return Response(409, {}, json.dumps({"kind": "Status", "reason": "Conflict", "code": 409}).encode())
        self.renewals.append(asyncio.get_running_loop().time())
        return Response(200 if request.method == "PUT" else 201, {}, json.dumps(self.store(doc)).encode())

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        self.watched.append(request)

        async def chunks() -> AsyncIterator[bytes]:
            marker = {"resourceVersion": "1", "annotations": {"k8s.io/initial-events-end": "true"}}
            bookmark = {"kind": "LeaseCandidate", "apiVersion": "coordination.k8s.io/v1beta1", "metadata": marker}
            yield json.dumps({"type": "BOOKMARK", "object": bookmark}).encode() + b"\n"
            while True:
                yield await self.events.get()

        yield Stream(200, {}, chunks())


async def test_a_lease_candidate_is_created_renewed_and_answers_a_ping() -> None:
    server, clock = Server(), LoopClock()
    client = server.client(clock)
    version = EffectiveVersion(Version(1, 35), Version(1, 34))
    candidate = Candidate(client, "host_1", "kube-controller-manager", version, clock, random.Random(1))
    assert candidate.check() == "1 informers not started yet: [*v1beta1.LeaseCandidate]"
    task = asyncio.create_task(candidate.run())
    await asyncio.sleep(1)
    assert candidate.check() is None
    assert ("fieldSelector", "metadata.name=host_1") in server.watched[0].query
    assert server.doc is not None
    spec = server.doc["spec"]
    assert {key: spec[key] for key in spec if key != "renewTime"} == {
        "leaseName": "kube-controller-manager",
        "binaryVersion": RELEASE,
        "emulationVersion": "1.35.0",
        "strategy": "OldestEmulationVersion",
    }
    assert (server.doc["metadata"]["name"], server.doc["metadata"]["namespace"]) == ("host_1", "kube-system")

    await asyncio.sleep(RENEW_S)
    assert len(server.renewals) == 2
    assert server.doc["spec"]["leaseName"] == "kube-controller-manager"

    await asyncio.sleep(100)
    pinged = {**server.doc["spec"], "pingTime": format_micro_time(clock.now()), "more": 1}
    server.store({**server.doc, "spec": pinged})
    await asyncio.sleep(1)
    assert len(server.renewals) == 3
    assert server.doc["spec"]["renewTime"] >= pinged["pingTime"]
    assert server.doc["spec"]["more"] == 1

    task.cancel()
    await asyncio.wait([task])
