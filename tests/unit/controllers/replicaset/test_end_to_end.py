"""The controller in a whole sandbox, on virtual time, while a cache is behind; and which pods it takes."""

from typing import Any

import pytest

from kcm_cli.api.apps import REPLICA_SETS
from kcm_cli.api.core import PODS
from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.replicaset.config import ReplicaSetConfig
from kcm_cli.rest.transport import Request, Response
from tests.kit.controlling import controllers
from tests.kit.faults import Held, Rewriting, refusal
from tests.kit.world import World

SKIPS = 'replicaset_controller_stale_sync_skips_total{group="apps",resource="replicasets"}'


def document(**spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {"metadata": {"name": "r"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template} | spec}


async def pods(world: World) -> list[dict[str, Any]]:
    items = await world.items(PODS)
    return [pod for pod in items if "deletionTimestamp" not in pod["metadata"]]


async def ready(world: World) -> int:
    return int((await world.get(REPLICA_SETS, "r"))["status"].get("readyReplicas", 0))


@pytest.mark.parametrize("on", [True, False], ids=["gate on", "gate off"])
async def test_a_status_is_not_written_before_the_cache_shows_the_last_one(world: World, on):
    def written(request: Any) -> bool:
        return request.method == "PUT" and request.path.endswith("/replicasets/r/status")

    held = Held(world.server.transport(), world.clock, "/apis/apps/v1/replicasets", written)
    gates = [("", f"StaleControllerConsistencyReplicaSet={on}")]
    metrics = Registry()
    names = ["replicaset-controller"]
    async with controllers(world, ReplicaSetConfig(), names=names, gates=gates, transport=held, metrics=metrics):
        await world.create(REPLICA_SETS, document(replicas=3))
        await world.wait(30)
        assert (await ready(world) == 3) is not on
        assert (SKIPS in metrics.expose().decode()) is on
        held.release()
        await world.wait(5)
        assert await ready(world) == 3


@pytest.mark.parametrize("on", [True, False], ids=["gate on", "gate off"])
async def test_the_pod_with_the_lowest_deletion_cost_is_deleted_first(world: World, on):
    gates = [("", f"PodDeletionCost={on}")]
    metrics = Registry()
    names = ["replicaset-controller"]
    async with controllers(world, ReplicaSetConfig(), names=names, gates=gates, metrics=metrics):
        await world.create(REPLICA_SETS, document(replicas=3))
        await world.wait(30)
        order = sorted(await pods(world), key=lambda pod: str(pod["metadata"]["uid"]))
        cheap = order[-1]["metadata"]["name"]
        costs = {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-5"}}}
        await world.patch(PODS, cheap, costs)
        await world.wait(1)
        await world.patch(REPLICA_SETS, "r", {"spec": {"replicas": 2}})
        await world.wait(5)
        left = {pod["metadata"]["name"] for pod in await pods(world)}
        assert len(left) == 2
        assert (cheap in left) is not on
    ratio = "replicaset_controller_sorting_deletion_age_ratio_count 1"
    assert ratio in metrics.expose().decode()


async def test_pods_that_a_node_rejects_are_not_created_again_and_again(world: World):
    """kubernetes#72593"""
    created = 0

    def limit(request: Request) -> Response | None:
        nonlocal created
        created += request.method == "POST" and request.path.endswith("/pods")
        return refusal(403, "Forbidden", "too many") if created > 100 else None

    body = document(replicas=1)
    sysctls = [{"name": "net.core.somaxconn", "value": "1024"}]
    body["spec"]["template"]["spec"]["securityContext"] = {"sysctls": sysctls}
    limited = Rewriting(world.server.transport(), answer=limit)
    async with controllers(world, ReplicaSetConfig(), names=["replicaset-controller"], transport=limited):
        await world.create(REPLICA_SETS, body)
        await world.wait(30)
        rejected = await pods(world)
        assert {pod["status"]["reason"] for pod in rejected} == {"SysctlForbidden"}
        assert 5 <= len(rejected) < 20
        await world.wait(570)
        assert len(rejected) + 5 < created < 50


async def test_an_invalid_selector_does_not_affect_others(world: World, caplog):
    """Such a ReplicaSet was accepted by an older server; its pods change, and another ReplicaSet is served."""
    names = ["replicaset-controller"]
    async with controllers(world, ReplicaSetConfig(), names=names):
        await world.create(REPLICA_SETS, document(replicas=1, minReadySeconds=1))
        await world.wait(0.1)
        store = world.server.store
        (stored,) = store.list(REPLICA_SETS.gvr, "default")
        odd = {**stored.copy(), "spec": {**stored.copy()["spec"]}}
        odd["spec"]["selector"] = {"matchExpressions": [{"key": "a", "operator": "Near"}]}
        store.update(REPLICA_SETS.gvr, "default", "r", odd)
        await world.create(REPLICA_SETS, {**document(replicas=2), "metadata": {"name": "fine"}})
        await world.wait(60)
    assert (await world.get(REPLICA_SETS, "fine"))["status"]["readyReplicas"] == 2
    assert len(await pods(world)) == 3
    errors = {record.message for record in caplog.records if record.levelname == "ERROR"}
    assert errors == {"The selector cannot be used"}
