"""The controller in a whole sandbox, on virtual time: pods are scheduled, start and end."""

import random
from collections import Counter
from typing import Any

import pytest

from kcm_cli.api.apps import CONTROLLER_REVISIONS, STATEFUL_SETS
from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS, PODS
from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.shared.failed_pods import FailedPods
from kcm_cli.controllers.statefulset.config import StatefulSetConfig
from kcm_cli.controllers.statefulset.plan import identity
from kcm_cli.planning.actions import STRATEGIC_MERGE
from kcm_cli.planning.revisions import patch_of
from kcm_cli.rest.transport import Request, Response
from tests.kit.controlling import Faulty, controllers, metric
from tests.kit.faults import Refusing, Rewriting, refusal
from tests.kit.world import World, resource


def document(**spec: Any) -> dict[str, Any]:
    full = {
        "replicas": 3,
        "serviceName": "db",
        "selector": {"matchLabels": {"app": "db"}},
        "template": {
            "metadata": {"labels": {"app": "db"}},
            "spec": {"containers": [{"name": "c", "image": "i:1"}], "terminationGracePeriodSeconds": 1},
        },
    }
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": full | spec}


class Story:
    """A StatefulSet ``db`` and the questions of the tests."""

    def __init__(self, world: World) -> None:
        self.world = world

    def running(self, **options: Any) -> Any:
        return controllers(self.world, StatefulSetConfig(), names=["statefulset-controller"], **options)

    async def make(self, **spec: Any) -> None:
        await self.world.client.create(STATEFUL_SETS, "default", document(**spec))

    async def patch(self, spec: dict[str, Any]) -> None:
        await self.world.client.patch(STATEFUL_SETS, "default", "db", {"spec": spec}, content_type=STRATEGIC_MERGE)

    async def image(self, image: str) -> None:
        await self.patch({"template": {"spec": {"containers": [{"name": "c", "image": image}]}}})

    async def status(self) -> dict[str, Any]:
        found = await self.world.client.get_doc(STATEFUL_SETS, "default", "db")
        return found["status"]  # type: ignore[return-value]

    async def pods(self) -> dict[str, str]:
        """Images by the names of the pods."""
        return {pod["metadata"]["name"]: pod["spec"]["containers"][0]["image"] for pod in await self.world.items(PODS)}

    async def settled(self, image: str, count: int = 3) -> bool:
        status = await self.status()
        images = await self.pods()
        return status.get("availableReplicas") == count and list(images.values()) == [image] * count


@pytest.fixture
def story(world: World) -> Story:
    return Story(world)


@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
async def test_lifecycle(world: World, story: Story, policy):
    async with story.running():
        await story.make(podManagementPolicy=policy)
        await world.wait(60)
        assert await story.settled("i:1")
        await story.image("i:2")
        await world.wait(120)
        assert await story.settled("i:2")
        assert [revision["revision"] for revision in await story.world.items(CONTROLLER_REVISIONS)] in (
            [1, 2],
            [2, 1],
        )
        await story.image("i:1")
        await world.wait(120)
        assert await story.settled("i:1")
        assert sorted(revision["revision"] for revision in await story.world.items(CONTROLLER_REVISIONS)) == [2, 3]
        await story.patch({"replicas": 1})
        await world.wait(60)
        assert list(await story.pods()) == ["db-0"]
        status = await story.status()
        assert (status["replicas"], status["currentRevision"]) == (1, status["updateRevision"])


async def test_a_restarted_controller_writes_nothing(world: World, story: Story):
    claims = [
        {
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }
    ]
    async with story.running():
        await story.make(
            podManagementPolicy="Parallel",
            volumeClaimTemplates=claims,
            persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete", "whenScaled": "Retain"},
        )
        await world.wait(60)
    kinds = (STATEFUL_SETS, PODS, CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS)
    before = [await story.world.items(kind) for kind in kinds]
    assert len(before[1]) == len(before[3]) == 3
    metrics = Registry()
    async with story.running(metrics=metrics):
        await world.wait(60)
    assert metric(metrics, "workqueue_adds_total") > 0
    assert metric(metrics, "kcm_controller_writes_total") == 0
    assert [await story.world.items(kind) for kind in kinds] == before
    owners = [claim["metadata"]["ownerReferences"][0]["name"] for claim in before[3]]
    assert owners == ["db"] * 3


@pytest.mark.parametrize(
    ("gate", "terminating"),
    [pytest.param(True, ["db-1", "db-2", "db-3"], id="on"), pytest.param(False, ["db-3"], id="off")],
)
async def test_with_the_gate_max_unavailable_pods_are_replaced_at_once(world: World, story: Story, gate, terminating):
    async with story.running(gates=[("", f"MaxUnavailableStatefulSet={str(gate).lower()}")]):
        await story.make(replicas=4, podManagementPolicy="Parallel")
        made = await world.client.get_doc(STATEFUL_SETS, "default", "db")
        made["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"] = 3  # type: ignore[index, call-overload]
        world.server.store.update(STATEFUL_SETS.gvr, "default", "db", made)  # the sandbox drops it, as by default
        await world.wait(60)
        for name in await story.pods():
            await world.patch(PODS, name, {"metadata": {"finalizers": ["example.com/wait"]}})
        await story.image("i:2")
        await world.wait(1)
        pods = {pod["metadata"]["name"]: pod["metadata"] for pod in await world.items(PODS)}
        assert sorted(name for name, metadata in pods.items() if "deletionTimestamp" in metadata) == terminating
        for _ in range(4):
            for name in await story.pods():
                await world.patch(PODS, name, {"metadata": {"finalizers": None}})
            await world.wait(60)
        assert await story.settled("i:2", 4)


@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
@pytest.mark.parametrize("seed", range(2))
async def test_lost_requests_and_answers_only_delay(world: World, story: Story, policy, seed):
    faulty = Faulty(world.server.transport(), random.Random(seed), 0.3)
    async with story.running(transport=faulty):
        await story.make(podManagementPolicy=policy)
        await world.wait(200)
        assert await story.settled("i:1")
        await story.image("i:2")
        await world.wait(400)
        assert await story.settled("i:2")
    assert faulty.faults > 3
    assert sorted(revision["revision"] for revision in await story.world.items(CONTROLLER_REVISIONS)) == [1, 2]


async def test_a_deleted_set_has_no_metrics(world: World):
    story, metrics = Story(world), Registry()
    gauge = "\nstatefulset_controller_statefulset_max_unavailable{"
    async with story.running(metrics=metrics, gates=[("", "MaxUnavailableStatefulSet=true")]):
        await story.make()
        await world.wait(30)
        assert gauge in metrics.expose().decode()
        await world.delete(STATEFUL_SETS, "db")
        await world.wait(10)
        assert gauge not in metrics.expose().decode()


async def test_pods_that_are_down_are_counted_while_an_ordered_set_waits_for_one(world: World):
    story, metrics = Story(world), Registry()

    def down() -> list[str]:
        name = "statefulset_controller_statefulset_unavailable_replicas{"
        return [line.split()[-1] for line in metrics.expose().decode().splitlines() if line.startswith(name)]

    async with story.running(metrics=metrics, gates=[("", "MaxUnavailableStatefulSet=true")]):
        await story.make(replicas=2)
        await world.wait(60)
        assert [float(count) for count in down()] == [0]
        await world.patch(PODS, "db-0", {"metadata": {"finalizers": ["example.com/wait"]}})
        await world.delete(PODS, "db-0")
        await world.wait(5)
        assert [float(count) for count in down()] == [1]


@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
async def test_a_set_of_two_billion_pods_does_not_block_others(world: World, story: Story, policy):

    def refused(request: Request) -> bool:
        return request.method == "POST" and request.path.endswith("/default/pods")

    transport = Refusing(world.server.transport(), refused)
    async with story.running(transport=transport):
        huge = document(replicas=2**31 - 1, podManagementPolicy=policy, selector={"matchLabels": {"app": "huge"}})
        huge["metadata"] = {"name": "huge"}
        huge["spec"]["template"] = {**huge["spec"]["template"], "metadata": {"labels": {"app": "huge"}}}
        await world.create(resource("namespaces", namespaced=False), {"metadata": {"name": "other"}})
        await world.create(resource("serviceaccounts"), {"metadata": {"name": "default"}}, "other")
        await world.create(STATEFUL_SETS, huge)
        await world.create(STATEFUL_SETS, document(), "other")
        await world.wait(60)
        other = await world.get(STATEFUL_SETS, "db", "other")
        assert other["status"]["readyReplicas"] == 3
        assert transport.refused > 1


async def test_a_set_grows_beyond_the_limit_of_one_sync(world: World, story: Story, monkeypatch):
    monkeypatch.setattr(identity, "MAX_MISSING", 2)
    async with story.running():
        await story.make(replicas=7, podManagementPolicy="Parallel")
        await world.wait(60)
        assert await story.settled("i:1", 7)
        await world.delete(PODS, "db-0")
        await world.delete(PODS, "db-1")
        await world.delete(PODS, "db-2")
        await story.image("i:2")
        await world.wait(300)
        assert await story.settled("i:2", 7)


async def test_a_set_has_more_claims_than_one_sync_looks_at(world: World, story: Story, monkeypatch):
    monkeypatch.setattr(identity, "MAX_CLAIMS", 3)
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    templates = [{"metadata": {"name": name}, "spec": claim} for name in ("data", "logs")]
    async with story.running():
        await story.make(replicas=5, podManagementPolicy="Parallel", volumeClaimTemplates=templates)
        await world.wait(60)
        assert len(await story.pods()) == 5
        assert len(await world.items(PERSISTENT_VOLUME_CLAIMS)) == 10
        await story.patch({"replicas": 0})
        await world.wait(60)
        assert await story.pods() == {}


async def test_pending_pods_lack_more_claims_than_one_sync_creates(world: World, story: Story, monkeypatch):
    """No pod changes, and so none queues the set again."""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    templates = [{"metadata": {"name": name}, "spec": claim} for name in ("data", "logs")]
    await story.make(replicas=12, podManagementPolicy="Parallel", volumeClaimTemplates=templates)
    await story.patch({"template": {"spec": {"nodeSelector": {"no": "such"}}}})
    async with story.running():
        await world.wait(60)
    for found in await world.items(PERSISTENT_VOLUME_CLAIMS):
        world.server.store.delete(PERSISTENT_VOLUME_CLAIMS.gvr, "default", found["metadata"]["name"])
    assert await world.items(PERSISTENT_VOLUME_CLAIMS) == []
    monkeypatch.setattr(identity, "MAX_CLAIMS", 3)

    def refused(request: Request) -> bool:
        return request.method == "POST" and request.path.endswith("claims") and transport.refused < 200

    transport = Refusing(world.server.transport(), refused)
    async with story.running(transport=transport):
        await world.wait(5)
    assert 0 < transport.refused < 200  # what failed waits for its retry
    async with story.running():
        await world.wait(5)
        assert {pod["status"]["phase"] for pod in await world.items(PODS)} == {"Pending"}
        assert len(await world.items(PERSISTENT_VOLUME_CLAIMS)) == 24


async def test_a_set_that_waits_for_deletions_keeps_a_revision(world: World, story: Story):
    """As upstream: the garbage collector deletes the revision, and the deletion of a pod recreates it."""
    async with story.running():
        await story.make(podManagementPolicy="Parallel")
        await world.wait(60)
        await world.client.patch(STATEFUL_SETS, "default", "db", {"metadata": {"finalizers": ["test/wait"]}})
        await world.client.delete(STATEFUL_SETS, "default", "db")
        (revision,) = await world.items(CONTROLLER_REVISIONS)
        await world.client.delete(CONTROLLER_REVISIONS, "default", revision["metadata"]["name"])
        await world.client.delete(PODS, "default", "db-1")
        await world.wait(10)
        assert [one["data"] for one in await world.items(CONTROLLER_REVISIONS)] == [revision["data"]]
        assert sorted(await story.pods()) == ["db-0", "db-2"]


async def test_expired_delays_are_looked_for_once_for_many_rejected_pods(world: World, story: Story, monkeypatch):
    calls: Counter[str] = Counter()
    collect, following = FailedPods.collect, FailedPods.next

    def collecting(failed: FailedPods, now: float) -> None:
        calls["collect"] += 1
        collect(failed, now)

    def doubling(failed: FailedPods, key: str, now: float) -> None:
        calls["next"] += 1
        following(failed, key, now)

    sysctls = [{"name": "net.core.somaxconn", "value": "1024"}]
    await story.make(replicas=20, podManagementPolicy="Parallel")
    await story.patch({"template": {"spec": {"securityContext": {"sysctls": sysctls}}}})
    async with story.running():
        await world.wait(30)
    monkeypatch.setattr(FailedPods, "collect", collecting)
    monkeypatch.setattr(FailedPods, "next", doubling)
    async with story.running():
        await world.wait(0.5)
        assert calls["next"] >= 20
        assert calls["collect"] <= 5


@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
async def test_a_pod_that_its_node_rejects_is_not_replaced_again_and_again(world: World, policy):
    """kubernetes#89067"""
    story, created = Story(world), 0

    def limit(request: Request) -> Response | None:
        nonlocal created
        created += request.method == "POST" and request.path.endswith("/pods")
        return refusal(403, "Forbidden", "too many") if created > 100 else None

    sysctls = [{"name": "net.core.somaxconn", "value": "1024"}]
    async with story.running(transport=Rewriting(world.server.transport(), answer=limit)):
        await story.make(replicas=1, podManagementPolicy=policy)
        await world.wait(30)
        assert created == 1
        await story.patch({"template": {"spec": {"securityContext": {"sysctls": sysctls}}}})
        await world.wait(60)
        assert 5 <= created < 12
        await world.wait(600)
        assert 15 <= created < 30
        await story.patch({"template": {"spec": {"securityContext": {"sysctls": []}}}})
        await world.wait(10)
        status = await story.status()
        assert (status["readyReplicas"], status["updatedReplicas"]) == (1, 1)


@pytest.mark.parametrize("former", [False, True], ids=["at first", "with a revision of Go's manager"])
async def test_a_set_of_a_long_name_has_its_pods(world: World, former):
    """kubernetes#64023: the name of the revision is a label of pods, and must not be longer than that may be."""
    name, story = "x" * 57, Story(world)
    body = document() | {"metadata": {"name": name}}
    made = await world.client.create(STATEFUL_SETS, "default", body)
    if former:
        owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name, "uid": made.uid, "controller": True}
        metadata = {"name": f"{name}-5f6b8d9c7f", "labels": {"app": "db"}, "ownerReferences": [owner]}
        data = patch_of((await world.get(STATEFUL_SETS, name))["spec"]["template"])
        await world.client.create(CONTROLLER_REVISIONS, "default", {"metadata": metadata, "revision": 1, "data": data})
    async with story.running():
        await world.wait(60)
        assert await story.pods() == {f"{name}-{number}": "i:1" for number in range(3)}
        template = {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}
        await world.client.patch(
            STATEFUL_SETS, "default", name, {"spec": {"template": template}}, content_type=STRATEGIC_MERGE
        )
        await world.wait(120)
        assert await story.pods() == {f"{name}-{number}": "i:2" for number in range(3)}
