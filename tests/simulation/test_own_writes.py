"""No pod is created twice with late watch events and lost answers.

Pods here never fail and are never deleted, so that each owner needs as many creations as it has replicas, completions
or nodes: one more is one that was made on a cache older than the manager's own writes.
"""

import asyncio
import json
import random
from collections import Counter
from contextlib import suppress
from typing import Any

import pytest

from kcm_cli.rest.transport import Around, Request, Response, Transport
from tests.kit.faults import Late
from tests.kit.simulation import NAMESPACE, World, simulate
from tests.kit.workload import deployment, job, stateful_set, template

SIZE = 5
NODES = 3
ONLY = ("serviceaccount", "deployment", "replicaset", "statefulset", "daemonset", "job")
WANTED = {"ReplicaSet": SIZE, "StatefulSet": SIZE, "Job": SIZE, "DaemonSet": NODES}


class Made(Around):
    """Counts the pods that were really made, by the kind of their owner."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner)
        self.by_kind: Counter[str] = Counter()

    async def send(self, request: Request) -> Response:
        response = await self._inner.send(request)
        if request.method == "POST" and request.path.endswith("/pods") and response.status == 201:
            owners: list[dict[str, Any]] = json.loads(request.body)["metadata"]["ownerReferences"]
            self.by_kind[owners[0]["kind"]] += 1
        return response


def daemon_set(name: str) -> dict[str, Any]:
    spec = {"selector": {"matchLabels": {"app": name}}, "template": template(name, "v1")}
    return {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}


@pytest.mark.parametrize("seed", range(6))
def test_no_pod_is_created_twice(seed: int) -> None:
    async def story(world: World) -> None:
        made: list[Made] = []
        late: list[Late] = []

        def through(inner: Transport) -> Transport:
            made.append(Made(inner))
            late.append(Late(made[0], world.clock, random.Random(seed)))
            return late[0]

        manager = world.manager(only=ONLY, through=through)
        await world.create("apps/v1/deployments", deployment("deployment", SIZE))
        await world.create("apps/v1/statefulsets", stateful_set("stateful", SIZE))
        await world.create("apps/v1/daemonsets", daemon_set("daemon"))
        await world.create("batch/v1/jobs", job("job", SIZE))
        for _ in range(300):
            await world.clock.sleep(1.0)
            if made[0].by_kind == WANTED:
                break
        await world.clock.sleep(60.0)
        manager.cancel()
        with suppress(asyncio.CancelledError):
            await manager
        assert late[0].faults > 10
        assert made[0].by_kind == WANTED

    simulate(seed, story)
