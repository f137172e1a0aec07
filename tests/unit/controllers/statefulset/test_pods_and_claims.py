"""Pods and claims that need corrections: the controller in a whole sandbox, on virtual time."""

import random
from typing import Any

import pytest

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS
from kcm_cli.rest.transport import Request, Response
from tests.kit.controlling import Faulty
from tests.kit.faults import Noting, Refusing, Rewriting, refusal
from tests.kit.world import PODS, World, resource
from tests.unit.controllers.statefulset.test_end_to_end import Story

CLAIMS = resource("persistentvolumeclaims")
REVISIONS = resource("controllerrevisions", "apps")
TEMPLATE = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
POD_NAME = "statefulset.kubernetes.io/pod-name"


async def claims(world: World) -> dict[str, list[str]]:
    """Claims, with the kinds and names of their owners."""
    return {
        claim["metadata"]["name"]: [f"{r['kind']}/{r['name']}" for r in claim["metadata"].get("ownerReferences", [])]
        for claim in await world.items(PERSISTENT_VOLUME_CLAIMS)
    }


async def messages(world: World, reason: str) -> list[str]:
    return [text for found, text in await world.events("db") if found == reason]


def refusing(world: World, method: str, plural: str, broken: list[bool]) -> Any:
    def answer(request: Request) -> Response | None:
        if broken[0] and request.method == method and f"/{plural}" in request.path and "/status" not in request.path:
            return refusal(403, "Forbidden", "not now")
        return None

    return Rewriting(world.server.transport(), answer=answer)


async def test_a_pod_waits_for_its_claims(world: World):
    story, broken = Story(world), [True]
    transport = refusing(world, "POST", "persistentvolumeclaims", broken)
    async with story.running(transport=transport):
        await story.make(volumeClaimTemplates=[TEMPLATE], replicas=2, podManagementPolicy="Parallel")
        await world.wait(30)
        assert await story.pods() == {}
        claim = "Create Claim data-db-0 for Pod db-0 in StatefulSet db failed error: not now"
        pod = "Create Pod db-0 in StatefulSet db failed error: failed to create PVC data-db-0: not now"
        assert {claim, pod} <= set(await messages(world, "FailedCreate"))
        broken[0] = False
        await world.wait(120)
        assert set(await story.pods()) == {"db-0", "db-1"}
        assert await claims(world) == {"data-db-0": [], "data-db-1": []}


@pytest.mark.cluster(alone=True)
async def test_a_pending_pod_gets_its_deleted_claim_again(world: World):
    """There is no scheduler, so that the pod stays pending."""
    story = Story(world)
    async with story.running():
        await story.make(volumeClaimTemplates=[TEMPLATE], replicas=1)
        await world.wait(5)
        before = (await world.get(CLAIMS, "data-db-0"))["metadata"]["uid"]
        await world.delete(CLAIMS, "data-db-0")
        await world.patch(CLAIMS, "data-db-0", {"metadata": {"finalizers": None}})
        await world.patch(PODS, "db-0", {"metadata": {"labels": {"any": "change"}}})
        await world.wait(5)
        assert (await world.get(CLAIMS, "data-db-0"))["metadata"]["uid"] != before
        assert "Create Claim data-db-0 Pod db-0 in StatefulSet db success" in await messages(world, "SuccessfulCreate")


async def test_a_pod_is_not_recreated_with_a_terminating_claim(world: World):
    story = Story(world)
    async with story.running():
        await story.make(volumeClaimTemplates=[TEMPLATE], replicas=1)
        await world.wait(30)
        before = (await world.get(CLAIMS, "data-db-0"))["metadata"]["uid"]
        await world.delete(CLAIMS, "data-db-0")
        await world.delete(PODS, "db-0")
        await world.wait(30)
        assert await story.pods() == {}
        text = "Create Pod db-0 in StatefulSet db failed error: pvc data-db-0 is being deleted"
        assert text in await messages(world, "FailedCreate")
        await world.patch(CLAIMS, "data-db-0", {"metadata": {"finalizers": None}})
        await world.wait(120)
        assert list(await story.pods()) == ["db-0"]
        assert (await world.get(CLAIMS, "data-db-0"))["metadata"]["uid"] != before


@pytest.mark.parametrize("owned", [False, True], ids=["deleted", "kept by another owner"])
async def test_a_pod_that_is_wanted_again_is_created_when_the_claim_of_the_former_one_is_gone(
    world: World, owned: bool
):
    """Scaled down and up again, before the claim was deleted with its pod: nothing else happens after that. The garbage
    collector removes only the reference to the pod if there is another owner."""
    story = Story(world)
    policy = {"whenDeleted": "Retain", "whenScaled": "Delete"}
    async with story.running():
        spec = {"persistentVolumeClaimRetentionPolicy": policy, "podManagementPolicy": "Parallel"}
        await story.make(volumeClaimTemplates=[TEMPLATE], replicas=2, **spec)
        await world.wait(60)
        before = (await world.get(CLAIMS, "data-db-1"))["metadata"]["uid"]
        await story.patch({"replicas": 1})
        await world.wait(30)
        assert await claims(world) == {"data-db-0": [], "data-db-1": ["Pod/db-1"]}
        await story.patch({"replicas": 2})
        await world.wait(300)
        assert list(await story.pods()) == ["db-0"]
        if owned:
            other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "m", "uid": "of-m"}
            await world.patch(CLAIMS, "data-db-1", {"metadata": {"ownerReferences": [other]}})
        else:
            await world.delete(CLAIMS, "data-db-1")
            await world.patch(CLAIMS, "data-db-1", {"metadata": {"finalizers": None}})
        await world.wait(30)
        assert list(await story.pods()) == ["db-0", "db-1"]
        assert ((await world.get(CLAIMS, "data-db-1"))["metadata"]["uid"] == before) is owned


async def test_a_claim_that_was_on_its_way_for_long_is_replaced_at_once(world: World):
    story = Story(world)
    async with story.running():
        await story.make(volumeClaimTemplates=[TEMPLATE | {"metadata": {"name": "a-b"}}], replicas=1)
        await world.wait(30)
        await world.delete(CLAIMS, "a-b-db-0")
        await world.delete(PODS, "db-0")
        await world.wait(3000)
        assert await story.pods() == {}
        await world.patch(CLAIMS, "a-b-db-0", {"metadata": {"finalizers": None}})
        await world.wait(5)
        assert list(await story.pods()) == ["db-0"]


@pytest.mark.parametrize(
    ("deleted", "scaled", "expected"),
    [
        pytest.param("Retain", "Retain", [[], []], id="kept"),
        pytest.param("Delete", "Retain", [["StatefulSet/db"], ["StatefulSet/db"]], id="go with the set"),
        pytest.param("Retain", "Delete", [[], ["Pod/db-1"]], id="go with a pod that is one too many"),
        pytest.param("Delete", "Delete", [["StatefulSet/db"], ["Pod/db-1"]], id="go with either"),
    ],
)
async def test_owners_of_claims_follow_the_policy(world: World, deleted, scaled, expected):
    story = Story(world)
    policy = {"whenDeleted": deleted, "whenScaled": scaled}
    async with story.running():
        await story.make(
            volumeClaimTemplates=[TEMPLATE],
            replicas=2,
            podManagementPolicy="Parallel",
            persistentVolumeClaimRetentionPolicy=policy,
        )
        await world.wait(60)
        await world.patch(PODS, "db-1", {"metadata": {"finalizers": ["example.com/wait"]}})
        await story.patch({"replicas": 1})
        await world.wait(30)
        found = await claims(world)
        assert [found["data-db-0"], found["data-db-1"]] == expected


async def test_a_claim_of_another_controller_is_reported_and_not_changed(world: World):
    story = Story(world)
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u", "controller": True}
    metadata = {"name": "data-db-0", "ownerReferences": [other], "labels": {"app": "db"}}
    await world.create(CLAIMS, {"metadata": metadata, "spec": TEMPLATE["spec"]})
    policy = {"whenDeleted": "Delete", "whenScaled": "Retain"}
    async with story.running():
        await story.make(volumeClaimTemplates=[TEMPLATE], replicas=1, persistentVolumeClaimRetentionPolicy=policy)
        await world.wait(30)
        assert await claims(world) == {"data-db-0": ["ConfigMap/x"]}
        (message, *_) = await messages(world, "ConflictingController")
        assert message == (
            "PersistentVolumeClaim data-db-0 has a conflicting OwnerReference that acts as a manging controller, "
            "the retention policy is ignored for this claim"
        )
        assert list(await story.pods()) == ["db-0"]


async def test_failed_writes_of_owners_are_reported(world: World):
    story, broken = Story(world), [True]
    transport = refusing(world, "PUT", "persistentvolumeclaims", broken)
    async with story.running(transport=transport):
        await story.make(volumeClaimTemplates=[TEMPLATE], replicas=1)
        await world.wait(30)
        policy = {"whenDeleted": "Delete", "whenScaled": "Retain"}
        await story.patch({"persistentVolumeClaimRetentionPolicy": policy})
        await world.wait(30)
        text = "could not update claim data-db-0 for delete policy ownerRefs: not now"
        assert any(text in one for one in await messages(world, "FailedUpdate"))
        broken[0] = False
        await world.wait(120)
        assert await claims(world) == {"data-db-0": ["StatefulSet/db"]}


async def test_a_pod_without_its_name_label_is_corrected(world: World):
    story = Story(world)
    async with story.running():
        await story.make(replicas=1)
        await world.wait(30)
        await world.patch(PODS, "db-0", {"metadata": {"labels": {POD_NAME: "wrong"}}})
        await world.wait(10)
        assert (await world.get(PODS, "db-0"))["metadata"]["labels"][POD_NAME] == "db-0"
        assert "Update Pod db-0 in StatefulSet db successful" in await messages(world, "SuccessfulUpdate")


async def test_a_failed_correction_of_a_pod_is_reported(world: World):
    story, broken = Story(world), [True]
    async with story.running(transport=refusing(world, "PUT", "pods", broken)):
        await story.make(replicas=1)
        await world.wait(30)
        await world.patch(PODS, "db-0", {"metadata": {"labels": {POD_NAME: "wrong"}}})
        await world.wait(10)
        text = "Update Pod db-0 in StatefulSet db failed error: not now"
        assert text in await messages(world, "FailedUpdate")
        broken[0] = False
        await world.wait(120)
        assert (await world.get(PODS, "db-0"))["metadata"]["labels"][POD_NAME] == "db-0"


async def test_a_failed_creation_is_reported_and_a_pod_of_another_owner_is_waited_for(world: World):
    story, broken = Story(world), [True]
    await world.pod("db-1")
    async with story.running(transport=refusing(world, "POST", "pods", broken)):
        await story.make(replicas=2)
        await world.wait(10)
        assert "Create Pod db-0 in StatefulSet db failed error: not now" in await messages(world, "FailedCreate")
        broken[0] = False
        await world.wait(120)
        assert (await story.status())["replicas"] == 1
        assert not any("db-1" in text for text in await messages(world, "FailedCreate"))
        await world.delete(PODS, "db-1")
        await world.wait(400)
        assert (await story.status())["availableReplicas"] == 2


@pytest.mark.parametrize("refused", [True, False])
async def test_deletions_of_pods_are_reported(world: World, refused):
    story = Story(world)
    async with story.running(transport=refusing(world, "DELETE", "pods", [refused])):
        await story.make(replicas=1)
        await world.wait(30)
        await story.patch({"replicas": 0})
        await world.wait(30)
        events = {e["reason"]: (e["type"], e["message"]) for e in await world.items(resource("events"))}
        text = "Delete Pod db-0 in StatefulSet db"
        assert events["SuccessfulCreate"][0] == "Normal"
        if refused:
            assert events["FailedDelete"] == ("Warning", f"{text} failed error: not now")
            assert "SuccessfulDelete" not in events
        else:
            assert events["SuccessfulDelete"] == ("Normal", f"{text} successful")
            assert "FailedDelete" not in events


@pytest.mark.cluster(alone=True)
async def test_pods_of_a_parallel_set_are_created_in_growing_batches(world: World):
    """Each creation takes a second: one pod, two, four."""
    story = Story(world)

    async def slow(request: Request) -> None:
        if request.method == "POST" and request.path.endswith("/pods"):
            await world.wait(1)

    async with story.running(transport=Refusing(world.server.transport(), lambda request: False, slow)):
        await story.make(replicas=7, podManagementPolicy="Parallel")
        counts = []
        for _ in range(4):
            await world.wait(0.9)
            counts.append(len(await story.pods()))
        assert counts == [0, 1, 3, 7]


async def fail(world: World, what: str) -> None:
    """Make the pod of ordinal 0 fail for good: a claim that is being deleted, a name that is taken, or a policy."""
    if what == "claim":
        await world.patch(CLAIMS, "data-db-0", {"metadata": {"finalizers": ["test/kept"]}})
        await world.delete(CLAIMS, "data-db-0")
    await world.delete(PODS, "db-0", grace_s=0)
    if what == "name":
        await world.pod("db-0", {"labels": {"app": "another"}})


@pytest.mark.parametrize("what", ["claim", "name", "policy"])
async def test_a_pod_that_cannot_be_created_delays_no_other_of_a_parallel_set(world: World, what):
    story, on = Story(world), False

    def refused(sent: Request) -> Response | None:
        create = on and sent.method == "POST" and sent.path.endswith("/pods") and b'"db-0"' in sent.body
        return refusal(403, "Forbidden") if create else None

    async with story.running(transport=Rewriting(world.server.transport(), answer=refused)):
        await story.make(replicas=5, podManagementPolicy="Parallel", volumeClaimTemplates=[TEMPLATE])
        await world.wait(20)
        on = what == "policy"
        await fail(world, what)
        await world.wait(5)
        for name in ("db-1", "db-2"):
            await world.delete(PODS, name, grace_s=0)
        await story.patch({"replicas": 4})
        await world.wait(30)
        pods = await world.items(PODS)
        mine = {pod["metadata"]["name"] for pod in pods if pod["metadata"]["labels"]["app"] == "db"}
        assert mine == {"db-1", "db-2", "db-3"}
        assert (await story.status())["replicas"] == 3


@pytest.mark.cluster(alone=True)
async def test_a_parallel_set_whose_pods_are_all_refused_tries_a_few(world: World):
    """In each sync one, two and four, so that a quota is not asked for each of a thousand pods."""
    story, times = Story(world), []

    def refused(sent: Request) -> Response | None:
        if sent.method != "POST" or not sent.path.endswith("/pods"):
            return None
        times.append(world.clock.monotonic())
        return refusal(403, "Forbidden")

    async with story.running(transport=Rewriting(world.server.transport(), answer=refused)):
        await story.make(replicas=100, podManagementPolicy="Parallel")
        await world.wait(30)
        assert {times.count(time) % 7 for time in set(times)} == {0}
        assert len(times) < 7 * 20


@pytest.mark.cluster(alone=True)
async def test_claims_of_an_operator_stay_its_own(world: World):
    """Its object controls them by their template, as those of RabbitMQ and Vertica do."""
    story, owner = Story(world), {"apiVersion": "v1", "kind": "ConfigMap", "name": "boss", "controller": True}
    configs = resource("configmaps")
    await world.create(configs, {"metadata": {"name": "boss"}})
    owner["uid"] = (await world.get(configs, "boss"))["metadata"]["uid"]
    template = {**TEMPLATE, "metadata": {"name": "data", "ownerReferences": [owner]}}
    async with story.running():
        await story.make(
            volumeClaimTemplates=[template],
            replicas=1,
            persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete", "whenScaled": "Retain"},
        )
        await world.wait(20)
        assert set(await story.pods()) == {"db-0"}
        assert await claims(world) == {"data-db-0": ["ConfigMap/boss"]}


async def test_claims_have_their_owner_from_the_start(world: World):
    """An update right after the creation would conflict with the binding of the claim."""
    story, noting = Story(world), Noting(world.server.transport())
    async with story.running(transport=noting):
        policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
        await story.make(
            replicas=2, volumeClaimTemplates=[TEMPLATE], persistentVolumeClaimRetentionPolicy=policy,
            podManagementPolicy="Parallel",
        )  # fmt: skip
        await world.wait(20)
        assert await claims(world) == {f"data-db-{n}": ["StatefulSet/db"] for n in range(2)}
        sent = [one.method for one in noting.sent if "persistentvolumeclaims" in one.path]
        assert [method for method in sent if method != "GET"] == ["POST", "POST"]


@pytest.mark.cluster(alone=True)
async def test_orphan_revisions_that_the_selector_matches_are_adopted(world: World):
    story = Story(world)
    for name, app in (("mine", "db"), ("other", "another")):
        metadata = {"name": name, "labels": {"app": app}}
        await world.create(REVISIONS, {"metadata": metadata, "data": {"name": name}, "revision": 1})
    async with story.running():
        await story.make(replicas=0)
        await world.wait(10)
        owners = {
            revision["metadata"]["name"]: [ref["name"] for ref in revision["metadata"].get("ownerReferences", [])]
            for revision in await world.items(REVISIONS)
        }
        assert (owners.pop("mine"), owners.pop("other")) == (["db"], [])
        assert list(owners.values()) == [["db"]]
        numbers = {r["metadata"]["name"]: r["revision"] for r in await world.items(REVISIONS)}
        assert sorted(numbers.values()) == [1, 1, 2]


async def test_a_collision_of_revision_names_is_counted(world: World):
    story = Story(world)
    async with story.running():
        await story.make(replicas=1)
        await world.wait(30)
        (revision,) = await world.items(REVISIONS)
        name = revision["metadata"]["name"]
    sets = resource("statefulsets", "apps")
    await world.delete(sets, "db", propagation="Background")
    await world.delete(REVISIONS, name)
    await world.delete(PODS, "db-0", grace_s=0)
    await world.create(REVISIONS, {"metadata": {"name": name}, "data": {"other": True}, "revision": 1})
    async with story.running():
        await story.make(replicas=1)
        await world.wait(60)
        status = await story.status()
        assert status["collisionCount"] == 1
        assert status["currentRevision"] not in ("", name)
        assert status["availableReplicas"] == 1


@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
async def test_a_pod_is_created_when_one_that_has_its_name_is_gone(world: World, policy):
    """As the pod of a former set that takes its time to end. The delay of failed syncs is minutes long by then."""
    other = {"metadata": {"name": "db-0"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await world.create(PODS, other)
    story = Story(world)
    async with story.running():
        await story.make(replicas=1, podManagementPolicy=policy)
        await world.wait(400)
        assert "ownerReferences" not in (await world.get(PODS, "db-0"))["metadata"]
        await world.delete(PODS, "db-0", grace_s=0)
        await world.wait(5)
        assert (await world.get(PODS, "db-0"))["metadata"]["ownerReferences"][0]["name"] == "db"


async def test_a_set_that_is_made_again_has_a_revision_of_its_own(world: World):
    """And not that of the former set, which the garbage collector deletes: without it, a partition is of no use."""
    story = Story(world)
    async with story.running():
        await story.make(replicas=2)
        await world.wait(30)
        await world.delete(resource("statefulsets", "apps"), "db", propagation="Background")
        for name in ("db-0", "db-1"):
            await world.delete(PODS, name, grace_s=0)
        (former,) = [one["metadata"]["name"] for one in await world.items(REVISIONS)]
        await story.make(replicas=2)
        await world.wait(30)
        await world.delete(REVISIONS, former)
        await story.patch({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}})
        await story.image("i:2")
        await world.wait(30)
        await world.delete(PODS, "db-0", grace_s=0)
        await world.wait(30)
        assert set(await story.pods()) == {"db-0", "db-1"}
        assert "i:2" not in (await story.pods()).values()
        assert len(await world.items(REVISIONS)) == 2


@pytest.mark.parametrize("seed", range(2))
async def test_claims_under_lost_requests(world: World, seed):
    story = Story(world)
    faulty = Faulty(world.server.transport(), random.Random(seed), 0.3)
    policy = {"whenDeleted": "Delete", "whenScaled": "Retain"}
    async with story.running(transport=faulty):
        await story.make(
            volumeClaimTemplates=[TEMPLATE],
            podManagementPolicy="Parallel",
            persistentVolumeClaimRetentionPolicy=policy,
        )
        await world.wait(400)
        assert faulty.faults
        assert await claims(world) == {f"data-db-{n}": ["StatefulSet/db"] for n in range(3)}
        assert set(await story.pods()) == {"db-0", "db-1", "db-2"}


async def test_a_pod_with_a_similar_name_does_not_get_the_identity_of_an_ordinal(world: World):
    story = Story(world)
    await world.pod("db-01", {"labels": {"app": "db"}})
    async with story.running():
        await story.make(replicas=2, podManagementPolicy="Parallel")
        await world.wait(30)
        assert POD_NAME not in (await world.get(PODS, "db-01"))["metadata"]["labels"]
        text = 'Update Pod db-1 in StatefulSet db failed error: pods "db-1" not found'
        assert text in await messages(world, "FailedUpdate")
        await world.delete(PODS, "db-01", grace_s=0)
        await world.wait(120)
        assert set(await story.pods()) == {"db-0", "db-1"}


async def test_a_terminating_pod_that_is_deleted_no_longer_counts(world: World):
    story = Story(world)
    async with story.running():
        await story.make(replicas=1)
        await world.wait(30)
        await world.patch(PODS, "db-0", {"metadata": {"finalizers": ["example.com/held"]}})
        await world.delete(PODS, "db-0")
        await world.wait(60)
        assert (await story.status())["replicas"] == 1
        await world.patch(PODS, "db-0", {"metadata": {"ownerReferences": None}})
        await world.wait(5)
        assert (await story.status())["replicas"] == 0
