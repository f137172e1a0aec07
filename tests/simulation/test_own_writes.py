"""No pod is created twice with late watch events and lost answers.

Pods here never fail and are never deleted, so that each owner needs as many creations as it has replicas, completions
or nodes: one more is one that was made on a cache older than the manager's own writes.
"""

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from kcm_cli.component.clock import Clock
from kcm_cli.rest.transport import Around, ConnectionLost, Request, Response, Stream, Transport
from tests.kit.simulation import NAMESPACE, World, simulate
from tests.kit.workload import deployment, job, stateful_set, template

SIZE = 5
NODES = 3
ONLY = ("serviceaccount", "deployment", "replicaset", "statefulset", "daemonset", "job")
WANTED = {"ReplicaSet": SIZE, "StatefulSet": SIZE, "Job": SIZE, "DaemonSet": NODES}


class Late(Around):
    """News come up to three seconds late, each kind's at its own pace; of each third write the answer is lost, or the
    write itself. Counts the pods that were really made, by the kind of their owner."""

    def __init__(self, inner: Transport, clock: Clock, rng: random.Random) -> None:
        super().__init__(inner)
        self._clock, self._rng = clock, rng
        self.made: Counter[str] = Counter()
        self.faults = 0

    async def send(self, request: Request) -> Response:
        fails = request.method != "GET" and self._rng.random() < 0.3
        if fails and self._rng.random() < 0.3:
            self.faults += 1
            raise ConnectionLost("broken on the way there")
        response = await self._inner.send(request)
        if request.method == "POST" and request.path.endswith("/pods") and response.status == 201:
            owners: list[dict[str, Any]] = json.loads(request.body)["metadata"]["ownerReferences"]
            self.made[owners[0]["kind"]] += 1
        if fails:
            self.faults += 1
            raise ConnectionLost("broken on the way back")
        return response

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        async with self._inner.stream(request) as stream:
            yield Stream(stream.status, stream.headers, self._late(stream.chunks))

    async def _late(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for chunk in chunks:
            await self._clock.sleep(self._rng.choice((0.0, 0.05, 3.0)))
            yield chunk


def daemon_set(name: str) -> dict[str, Any]:
    spec = {"selector": {"matchLabels": {"app": name}}, "template": template(name, "v1")}
    return {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}


@pytest.mark.parametrize("seed", range(6))
def test_no_pod_is_created_twice(seed: int) -> None:
    async def story(world: World) -> None:
        late: list[Late] = []

        def through(inner: Transport) -> Transport:
            late.append(Late(inner, world.clock, random.Random(seed)))
            return late[0]

        manager = world.manager(only=ONLY, through=through)
        await world.create("apps/v1/deployments", deployment("deployment", SIZE))
        await world.create("apps/v1/statefulsets", stateful_set("stateful", SIZE))
        await world.create("apps/v1/daemonsets", daemon_set("daemon"))
        await world.create("batch/v1/jobs", job("job", SIZE))
        for _ in range(300):
            await world.clock.sleep(1.0)
            if late[0].made == WANTED:
                break
        await world.clock.sleep(60.0)
        manager.cancel()
        with suppress(asyncio.CancelledError):
            await manager
        assert late[0].faults > 10
        assert late[0].made == WANTED

    simulate(seed, story)
