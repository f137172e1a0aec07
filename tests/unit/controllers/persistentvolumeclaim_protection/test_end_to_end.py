"""The controller in a whole sandbox, on virtual time."""

from functools import partial
from itertools import product

import pytest

from kcm_cli.api.core import PersistentVolumeClaim, Pod
from kcm_cli.controllers.persistentvolumeclaim_protection import plan
from kcm_cli.rest.transport import Request
from tests.kit.controlling import controllers
from tests.kit.faults import Held, Meanwhile, Noting
from tests.kit.world import PODS, World, resource

CLAIMS = resource("persistentvolumeclaims")
NAMESPACES = resource("namespaces", namespaced=False)
ACCOUNTS = resource("serviceaccounts")
NAME = "persistentvolumeclaim-protection-controller"


async def make(world: World, name: str, namespace: str = "default") -> None:
    requests = {"requests": {"storage": "1Gi"}}
    spec = {"storageClassName": "", "volumeName": "v", "accessModes": ["ReadWriteOnce"], "resources": requests}
    await world.create(CLAIMS, {"metadata": {"name": name}, "spec": spec}, namespace)


async def test_a_claim_is_deleted_at_once_or_after_the_pod_that_uses_it(world: World):
    for name in ("free", "used"):
        await make(world, name)
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "used"}}
    await world.pod("p", {"volumes": [volume], "nodeName": "node-1", "terminationGracePeriodSeconds": 1})
    async with controllers(world, names=[NAME]):
        await world.wait(5)
        for name in ("free", "used"):
            await world.delete(CLAIMS, name)
        await world.wait(5)
        assert (await world.is_deleted("free", CLAIMS), await world.is_deleted("used", CLAIMS)) == (True, False)
        await world.client.delete(resource("pods"), "default", "p", grace_s=0)
        await world.wait(5)
        assert await world.is_deleted("used", CLAIMS)


async def test_a_claim_without_the_finalizer_gets_it_beside_others(world: World):
    await make(world, "bare")
    await world.patch(CLAIMS, "bare", {"metadata": {"finalizers": ["example.com/keep"]}})
    async with controllers(world, names=[NAME]):
        await world.wait(5)
        finalizers = (await world.get(CLAIMS, "bare"))["metadata"]["finalizers"]
        assert finalizers == ["example.com/keep", "kubernetes.io/pvc-protection"]


async def test_lookups_of_claims_deleted_together_are_shared(world: World):
    names = [f"c{number}" for number in range(20)]
    for name in names:
        await make(world, name)
    for name in names:
        await world.delete(CLAIMS, name)
    transport = Noting(world.server.transport())
    async with controllers(world, names=[NAME], transport=transport):
        await world.wait(5)
        assert [await world.is_deleted(name, CLAIMS) for name in names] == [True] * len(names)
        assert transport.paths("GET").count("/api/v1/namespaces/default/pods") == 1


async def test_lookups_of_claims_deleted_in_several_namespaces_are_shared(world: World):
    spaces, names = ("default", "other"), [f"c{number}" for number in range(10)]
    await world.create(NAMESPACES, {"metadata": {"name": "other"}})
    for name, space in product(names, spaces):
        await make(world, name, space)

    async def delete_all() -> None:
        for name, space in product(names, spaces):
            await world.client.delete(CLAIMS, space, name)
        await world.wait(0.1)

    await make(world, "first")
    await world.delete(CLAIMS, "first")
    transport = Noting(Meanwhile(world.server.transport(), "GET", "/default/pods", delete_all))
    async with controllers(world, names=[NAME], transport=transport):
        await world.wait(5)
        gone = [await world.is_deleted(name, CLAIMS, space) for name, space in product(names, spaces)]
        assert all(gone)
        asked = [path for path in transport.paths("GET") if path.endswith("/pods")]
        assert asked.count("/api/v1/namespaces/default/pods") <= 2
        assert asked.count("/api/v1/namespaces/other/pods") == 1


async def test_claims_deleted_together_are_compared_with_the_pods_that_name_them_only(world: World, monkeypatch):
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "kept"}}
    for number in range(20):
        await world.pod(f"p{number}", {"volumes": [volume], "nodeName": "node-1"})
    names = [f"c{number}" for number in range(20)]
    for name in names:
        await make(world, name)
        await world.delete(CLAIMS, name)
    compared: list[str] = []
    uses = plan.uses

    def compare(pod: Pod, claim: PersistentVolumeClaim) -> bool:
        compared.append(claim.name)
        return uses(pod, claim)

    monkeypatch.setattr(plan, "uses", compare)
    async with controllers(world, names=[NAME]):
        await world.wait(5)
        assert [await world.is_deleted(name, CLAIMS) for name in names] == [True] * len(names)
    assert not compared


def lists_pods(request: Request) -> bool:
    return request.method == "GET" and request.path == "/api/v1/namespaces/default/pods"


async def use(world: World, claim: str, namespace: str = "default") -> None:
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": claim}}
    spec = {"containers": [{"name": "c", "image": "i"}], "volumes": [volume], "nodeName": "node-1"}
    await world.create(PODS, {"metadata": {"name": "p"}, "spec": spec}, namespace)


@pytest.mark.parametrize("namespace", ["default", "other"])
async def test_a_shared_lookup_frees_no_claim_that_a_pod_uses(world: World, namespace):
    """The pod is created before the lookup for the first claim, and the cache does not show it."""
    await world.create(NAMESPACES, {"metadata": {"name": "other"}})
    await world.create(ACCOUNTS, {"metadata": {"name": "default"}}, "other")
    await make(world, "a")
    await make(world, "used", namespace)
    await world.client.delete(CLAIMS, namespace, "used")
    await world.delete(CLAIMS, "a")
    answers = Meanwhile(world.server.transport(), "GET", "/default/pods", partial(use, world, "used", namespace))
    held = Held(answers, world.clock, "/api/v1/pods", since=lists_pods)
    async with controllers(world, names=[NAME], transport=held):
        await world.wait(5)
        assert await world.is_deleted("a", CLAIMS)
        assert "deletionTimestamp" in (await world.get(CLAIMS, "used", namespace))["metadata"]
        held.release()


async def test_a_lookup_older_than_a_claim_does_not_count(world: World):
    """After a lookup for another claim, a pod uses a claim that is then deleted. The cache does not show the pod."""
    for name in ("a", "used"):
        await make(world, name)
    await world.delete(CLAIMS, "a")

    async def replace() -> None:
        await use(world, "used")
        await world.delete(CLAIMS, "used")
        await world.wait(0.1)

    answers = Meanwhile(world.server.transport(), "PUT", "/a", replace)
    held = Held(answers, world.clock, "/api/v1/pods", since=lists_pods)
    async with controllers(world, names=[NAME], transport=held):
        await world.wait(5)
        assert answers.happened
        assert await world.is_deleted("a", CLAIMS)
        assert "deletionTimestamp" in (await world.get(CLAIMS, "used"))["metadata"]
        held.release()


async def test_a_claim_is_freed_though_the_cache_never_shows_the_pod_that_used_it(world: World):
    """As when a list takes the place of a watch: kubernetes#120041."""
    await make(world, "used")
    await world.delete(CLAIMS, "used")
    answers = Meanwhile(world.server.transport(), "GET", "/default/pods", partial(use, world, "used"))
    held = Held(answers, world.clock, "/api/v1/pods", since=lists_pods)
    async with controllers(world, names=[NAME], transport=held):
        await world.wait(5)
        assert "deletionTimestamp" in (await world.get(CLAIMS, "used"))["metadata"]
        await world.client.delete(PODS, "default", "p", grace_s=0)
        await world.wait(70)
        assert await world.is_deleted("used", CLAIMS)
        held.release()


async def bind(world: World, name: str) -> None:
    await world.client.patch(CLAIMS, "default", name, {"status": {"phase": "Bound"}}, subresource="status")


async def test_the_unused_condition_has_the_time_of_the_last_use(world: World):
    async def said(name: str) -> tuple[str, str, str]:
        conditions = (await world.get(CLAIMS, name))["status"].get("conditions", [])
        [found] = [one for one in conditions if one["type"] == "Unused"]
        return found["status"], found["reason"], found["lastTransitionTime"]

    for name in ("free", "used"):
        await make(world, name)
        await bind(world, name)
    other = {"type": "Resizing", "status": "True"}
    await world.client.patch(CLAIMS, "default", "free", {"status": {"conditions": [other]}}, subresource="status")
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "used"}}
    await world.pod("p", {"volumes": [volume], "schedulerName": "none"})
    async with controllers(world, names=[NAME], gates=[("", "PersistentVolumeClaimUnusedSinceTime=true")]):
        await world.wait(5)
        status, reason, since = await said("free")
        assert (status, reason) == ("True", "NoPodsUsingPVC")
        assert other.items() <= (await world.get(CLAIMS, "free"))["status"]["conditions"][0].items()
        assert (await said("used"))[:2] == ("False", "PodUsingPVC")
        await world.client.delete(resource("pods"), "default", "p", grace_s=0)
        await world.pod("late", {"volumes": [{**volume, "persistentVolumeClaim": {"claimName": "free"}}]})
        await world.wait(5)
        assert (await said("used"))[:2] == ("True", "NoPodsUsingPVC")
        assert (await said("free"))[0] == "False" and (await said("free"))[2] != since


async def test_a_claim_has_no_unused_condition_before_it_is_bound(world: World):
    """Its binding is written meanwhile, and would meet a conflict."""
    await make(world, "c")
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    async with controllers(world, names=[NAME], gates=[("", "PersistentVolumeClaimUnusedSinceTime=true")]):
        await world.pod("p", {"volumes": [volume], "schedulerName": "none"})
        await world.wait(5)
        assert "conditions" not in (await world.get(CLAIMS, "c"))["status"]
        await bind(world, "c")
        await world.wait(5)
        [condition] = (await world.get(CLAIMS, "c"))["status"]["conditions"]
        assert (condition["type"], condition["status"]) == ("Unused", "False")


async def test_without_the_gate_claims_have_no_unused_condition(world: World):
    await make(world, "c")
    await bind(world, "c")
    async with controllers(world, names=[NAME]):
        await world.wait(5)
        assert "conditions" not in (await world.get(CLAIMS, "c"))["status"]
