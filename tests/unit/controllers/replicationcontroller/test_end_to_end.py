"""ReplicationControllers and ReplicaSets in a whole sandbox, on virtual time: the same rules, side by side."""

import random
from typing import Any

import pytest

from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.replicaset.config import ReplicaSetConfig
from kcm_cli.controllers.replicationcontroller.config import ReplicationControllerConfig
from kcm_cli.rest.transport import Request, Response, Transport
from tests.kit.controlling import Faulty, controllers, metric
from tests.kit.faults import Rewriting, refusal
from tests.kit.world import PODS, World, resource

OWNERS = {
    "ReplicationController": resource("replicationcontrollers"),
    "ReplicaSet": resource("replicasets", "apps"),
}


class Story:
    """An owner ``r`` of pods labelled ``a: b``."""

    def __init__(self, world: World, kind: str) -> None:
        self.world = world
        self.kind = kind
        self.resource = OWNERS[kind]

    def running(self, transport: Transport | None = None, metrics: Registry | None = None) -> Any:
        names = ["replicaset-controller", "replicationcontroller-controller"]
        configs = (ReplicaSetConfig(), ReplicationControllerConfig())
        return controllers(self.world, *configs, names=names, transport=transport, metrics=metrics)

    async def make(self, replicas: int = 3, **spec: Any) -> None:
        selector: dict[str, Any] = {"a": "b"}
        if self.kind == "ReplicaSet":
            selector = {"matchLabels": selector}
        template = {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": 1},
        }
        full = {"replicas": replicas, "selector": selector, "template": template} | spec
        await self.world.create(self.resource, {"metadata": {"name": "r"}, "spec": full})

    async def status(self) -> dict[str, Any]:
        return (await self.world.get(self.resource, "r"))["status"]  # type: ignore[no-any-return]

    async def pods(self, **labels: str) -> list[dict[str, Any]]:
        items = await self.world.items(PODS)
        return [pod for pod in items if "deletionTimestamp" not in pod["metadata"]]

    async def owners(self) -> dict[str, list[str]]:
        return {
            pod["metadata"]["name"]: [ref["kind"] for ref in pod["metadata"].get("ownerReferences", [])]
            for pod in await self.pods()
        }


@pytest.fixture(params=sorted(OWNERS))
def story(world, request):
    """One of each of the kinds."""
    return Story(world, request.param)


async def test_lifecycle(story: Story):
    metrics = Registry()
    async with story.running(metrics=metrics):
        await story.make()
        await story.world.wait(20)
        status = await story.status()
        assert [status[k] for k in ("replicas", "readyReplicas", "availableReplicas")] == [3, 3, 3]
        await story.world.delete(PODS, (await story.pods())[0]["metadata"]["name"])
        await story.world.wait(20)
        assert len(await story.pods()) == (await story.status())["availableReplicas"] == 3
        await story.world.patch(story.resource, "r", {"spec": {"replicas": 1}})
        await story.world.wait(20)
        assert len(await story.pods()) == (await story.status())["replicas"] == 1
        assert metric(metrics, "replicaset_controller_sorting_deletion_age_ratio_count") == 2
        assert ("terminatingReplicas" in await story.status()) is (story.kind == "ReplicaSet")


async def test_matching_pods_are_adopted_and_others_released(story: Story):
    await story.world.pod("orphan", {"labels": {"a": "b"}})
    await story.world.pod("other", {"labels": {"a": "c"}})
    await story.world.wait(10)
    async with story.running():
        await story.make(2)
        await story.world.wait(20)
        owners = await story.owners()
        assert owners["orphan"] == [story.kind] and owners["other"] == []
        assert len(owners) == 3
        await story.world.patch(PODS, "orphan", {"metadata": {"labels": {"a": "x"}}})
        await story.world.wait(20)
        owners = await story.owners()
        assert owners["orphan"] == []
        assert len(owners) == 4


async def test_failed_pods_are_replaced(story: Story):
    async with story.running():
        await story.make(2)
        await story.world.wait(20)
        name = (await story.pods())[0]["metadata"]["name"]
        merge = "application/merge-patch+json"
        body = {"status": {"phase": "Failed"}}
        await story.world.client.patch(PODS, "default", name, body, content_type=merge, subresource="status")
        await story.world.wait(20)
        live = [pod for pod in await story.pods() if pod["status"]["phase"] == "Running"]
        assert len(live) == 2


async def test_pods_become_available_after_min_ready_seconds(story: Story):
    async with story.running():
        await story.make(2, minReadySeconds=60)
        await story.world.wait(30)
        assert (await story.status())["readyReplicas"] == 2
        assert (await story.status()).get("availableReplicas", 0) == 0
        await story.world.wait(60)
        assert (await story.status())["availableReplicas"] == 2


async def test_a_failure_is_a_condition_and_an_event_until_it_is_resolved(story: Story):
    broken = [True]

    def answer(request: Request) -> Response | None:
        if broken[0] and request.method == "POST" and request.path.endswith("/pods"):
            return refusal(403, "Forbidden", "no room")
        return None

    async with story.running(Rewriting(story.world.server.transport(), answer=answer)):
        await story.make(5)
        await story.world.wait(20)
        (condition,) = (await story.status())["conditions"]
        assert (condition["type"], condition["reason"], condition["message"]) == (
            "ReplicaFailure",
            "FailedCreate",
            "no room",
        )
        assert ("FailedCreate", "Error creating: no room") in await story.world.events("r")
        broken[0] = False
        await story.world.wait(400)
        assert (await story.status())["availableReplicas"] == 5
        assert "conditions" not in await story.status()


async def test_owners_with_the_same_selector_do_not_steal_pods(world: World):
    story = Story(world, "ReplicaSet")
    other = Story(world, "ReplicationController")
    async with story.running():
        await story.make(3)
        await world.wait(20)
        await other.make(2)
        await world.wait(20)
        kinds = sorted(kind for kinds in (await story.owners()).values() for kind in kinds)
        assert kinds == ["ReplicaSet"] * 3 + ["ReplicationController"] * 2


@pytest.mark.parametrize("seed", range(2))
async def test_lost_requests_and_answers(world: World, seed):
    """A creation with a lost answer is observed by the watch: finally all replicas exist."""
    story = Story(world, "ReplicaSet")
    faulty = Faulty(world.server.transport(), random.Random(seed), 0.3)
    async with story.running(faulty):
        await story.make(8)
        await world.wait(600)
        assert faulty.faults
        assert len(await story.pods()) == (await story.status())["availableReplicas"] == 8
        await world.patch(story.resource, "r", {"spec": {"replicas": 2}})
        await world.wait(600)
        assert len(await story.pods()) == (await story.status())["replicas"] == 2
