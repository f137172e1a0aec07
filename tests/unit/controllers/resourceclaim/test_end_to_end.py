"""The controller in a whole sandbox, on virtual time; the test stands in for the scheduler."""

import asyncio
import random
from typing import Any

import pytest

from kcm_cli.api.core import NAMESPACES
from kcm_cli.api.devices import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from kcm_cli.api.scheduling import POD_GROUPS
from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.resourceclaim import plan
from kcm_cli.controllers.resourceclaim.config import ResourceClaimConfig
from kcm_cli.rest.transport import Request
from tests.kit.alpha import make, serve
from tests.kit.controlling import Faulty, controllers
from tests.kit.devices import (
    FINALIZER,
    NOWHERE,
    allocate,
    by_name,
    claim_spec,
    claims,
    from_template,
    make_claim,
    make_template,
)
from tests.kit.faults import Held, Refusing
from tests.kit.world import PODS, World

GROUPS = [("", "GenericWorkload=true"), ("", "DRAWorkloadResourceClaims=true")]


def running(world: World, **options: Any) -> Any:
    return controllers(world, ResourceClaimConfig(), names=["resourceclaim-controller"], **options)


async def recorded(world: World, pod: str = "p") -> dict[str, str]:
    return {s["name"]: s["resourceClaimName"] for s in (await world.status(pod)).get("resourceClaimStatuses", [])}


async def ends(world: World, pod: str, phase: str) -> None:
    await world.client.patch(PODS, "default", pod, {"status": {"phase": phase}}, subresource="status")


async def claim(world: World, name: str) -> dict[str, Any]:
    return await world.get(RESOURCE_CLAIMS, name)


async def test_a_claim_is_created_from_its_template_and_recorded(world: World):
    registry = Registry()
    async with running(world, metrics=registry):
        await world.pod("p", from_template() | NOWHERE)
        await world.wait(1)
        reason, text = (await world.events("p"))[-1]
        assert reason == "FailedResourceClaimCreation"
        missing = 'resourceclaimtemplate.resource.k8s.io "t" not found'
        assert text == f'PodResourceClaim e: resource claim template "t": {missing}'
        await make_template(world, meta={"labels": {"l": "1"}, "annotations": {"a": "2"}}, adminAccess=None)
        await world.wait(2)
        (made,) = await claims(world)
        meta, pod = made["metadata"], await world.get(PODS, "p")
        assert await recorded(world) == {"e": meta["name"]}
        assert meta["name"].startswith("p-e-") and meta["generateName"] == "p-e-"
        assert meta["labels"] == {"l": "1"}
        assert meta["annotations"] == {"a": "2", "resource.kubernetes.io/pod-claim-name": "e"}
        uid = pod["metadata"]["uid"]
        ref = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": True}
        assert meta["ownerReferences"] == [ref]
        assert made["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] == "gpu"
        shown = registry.expose().decode()
        assert 'resourceclaim_controller_creates_total{admin_access="false",status="success"} 1' in shown
        labels = 'admin_access="false",allocated="false",source="resource_claim_template"'
        assert f"resourceclaim_controller_resource_claims{{{labels}}} 1" in shown


@pytest.mark.parametrize("groups", [False, True], ids=["pods", "groups"])
async def test_a_template_of_many_users_does_not_hold_the_loop(world: World, monkeypatch, groups):
    turns, needs_work = [0], plan.needs_work
    looked: list[int] = []
    counting: list[asyncio.Task[None]] = []

    async def count() -> None:
        for turns[0] in range(1, 50):
            await asyncio.sleep(0)

    def look(*args: Any) -> bool:
        if not looked:
            counting.append(asyncio.create_task(count()))
        looked.append(turns[0])
        return needs_work(*args)

    await serve(world, POD_GROUPS, status={})
    async with running(world, gates=GROUPS):
        for number in range(120):
            if groups:
                await make(world, POD_GROUPS, {"metadata": {"name": f"g{number}"}, "spec": from_template()})
            else:
                await world.pod(f"p{number}", from_template() | NOWHERE)
        await world.wait(1)
        monkeypatch.setattr(plan, "needs_work", look)
        await make_template(world)
        await world.wait(5)
        assert len(set(looked[:120])) > 1
        assert len(await claims(world)) == 120


async def test_a_deleted_claim_is_recreated_and_the_others_stay_recorded(world: World):
    await make_template(world)
    entries = [{"name": name, "resourceClaimTemplateName": "t"} for name in ("a", "b")]
    async with running(world):
        await world.pod("p", {"resourceClaims": entries} | NOWHERE)
        await world.wait(2)
        before = await recorded(world)
        await world.delete(RESOURCE_CLAIMS, before["a"])
        await world.wait(2)
        after = await recorded(world)
        assert after["b"] == before["b"] and after["a"] != before["a"]
        assert {c["metadata"]["name"] for c in await claims(world)} == set(after.values())


async def test_a_claim_missing_in_the_status_is_found(world: World):
    await make_template(world)
    transport = Refusing(world.server.transport(), lambda request: request.path.endswith("/status"))
    async with running(world, transport=transport):
        await world.pod("p", from_template() | NOWHERE)
        await world.wait(3)
        assert transport.refused > 1
    async with running(world):
        await world.wait(1)
        assert [c["metadata"]["name"] for c in await claims(world)] == [*(await recorded(world)).values()]


async def test_no_second_claim_with_a_stale_cache_and_lost_answers(world: World):
    await make_template(world)

    def created(request: Request) -> bool:
        return request.method == "POST" and request.path.endswith("/resourceclaims")

    faulty = Faulty(world.server.transport(), random.Random(4), 0.5)
    held = Held(faulty, world.clock, "/apis/resource.k8s.io/v1/resourceclaims", created)
    async with running(world, transport=held):
        for number in range(20):
            await world.pod(f"p{number}", from_template() | NOWHERE)
        await world.wait(30)
        held.release()
        await world.wait(30)
        assert faulty.faults > 20
        names = {name for number in range(20) for name in (await recorded(world, f"p{number}")).values()}
        assert len(names) == 20
        assert {c["metadata"]["name"] for c in await claims(world)} == names


@pytest.mark.parametrize("known", [True, False], ids=["recorded", "not recorded"])
async def test_a_claim_that_cannot_be_decoded_is_not_created_again(world: World, known):
    await make_template(world)
    async with running(world):
        await world.pod("p", from_template() | NOWHERE)
        await world.wait(2)
    (name,) = (await recorded(world)).values()
    store = world.server.store
    (doc,) = (one.copy() for one in store.list(RESOURCE_CLAIMS.gvr, "default"))
    store.update(RESOURCE_CLAIMS.gvr, "default", name, {**doc, "spec": "none"})
    if not known:
        body = {"status": {"resourceClaimStatuses": None}}
        await world.client.patch(PODS, "default", "p", body, subresource="status")
    async with running(world):
        await world.wait(30)
        assert await recorded(world) == {"e": name}
        assert len(store.list(RESOURCE_CLAIMS.gvr, "default")) == 1


@pytest.mark.parametrize("deletes", [True, False], ids=["deleted", "ended"])
async def test_the_last_reservation_deallocates_the_devices(world: World, deletes):
    await make_claim(world)
    for name in ("one", "two"):
        await world.pod(name, by_name("c") | {"nodeName": "node-1", "terminationGracePeriodSeconds": 1})
    await allocate(world, "c", "one", "two")
    async with running(world):
        for name in ("one", "two"):
            if deletes:
                await world.delete(PODS, name)
            else:
                await ends(world, name, "Failed")
            await world.wait(5)
            found = await claim(world, "c")
            if name == "one":
                assert [user["name"] for user in found["status"]["reservedFor"]] == ["two"]
                assert found["metadata"]["finalizers"] == [FINALIZER] and found["status"]["allocation"]
        assert "finalizers" not in found["metadata"]
        assert "allocation" not in found.get("status", {}) and "reservedFor" not in found.get("status", {})


async def test_a_generated_claim_is_deleted_when_its_pod_has_ended(world: World):
    await make_template(world)
    async with running(world):
        await world.pod("p", from_template() | NOWHERE)
        await world.wait(1)
        (name,) = (await recorded(world)).values()
        await allocate(world, name, "p")
        await world.wait(1)
        assert (await claim(world, name))["status"]["allocation"]
        await ends(world, "p", "Succeeded")
        await world.wait(2)
        assert await claims(world) == []


async def test_a_reservation_for_an_earlier_pod_of_the_name_is_removed(world: World):
    await make_claim(world)
    await world.pod("p", by_name("c") | NOWHERE)
    await allocate(world, "c", "p")
    await world.delete(PODS, "p", grace_s=0)
    await world.pod("p", by_name("c") | NOWHERE)
    async with running(world):
        await world.wait(2)
        assert "reservedFor" not in (await claim(world, "c")).get("status", {})


@pytest.mark.parametrize("same", [True, False], ids=["that pod", "another pod of the name"])
async def test_a_user_that_the_cache_does_not_show_is_looked_up(world: World, same):
    await make_claim(world)
    held = Held(world.server.transport(), world.clock, "/api/v1/pods", since=lambda request: False)
    async with running(world, transport=held):
        await world.wait(1)
        held.hold()
        await world.pod("p", by_name("c") | NOWHERE)
        await allocate(world, "c", "p")
        if not same:
            doc = await claim(world, "c")
            doc["status"]["reservedFor"][0]["uid"] = "another"
            await world.client.update(RESOURCE_CLAIMS, "default", "c", doc, subresource="status")
        await world.wait(2)
        users = (await claim(world, "c")).get("status", {}).get("reservedFor", [])
        assert [user["name"] for user in users] == (["p"] if same else [])
        held.release()


async def test_a_reservation_ends_with_its_pod_though_the_cache_never_shows_it(world: World):
    """As when a list takes the place of a watch: the devices would be lost."""
    await make_claim(world)
    held = Held(world.server.transport(), world.clock, "/api/v1/pods")
    async with running(world, transport=held):
        await world.wait(1)
        held.hold()
        await world.pod("p", by_name("c") | NOWHERE)
        await allocate(world, "c", "p")
        await world.wait(5)
        assert (await claim(world, "c"))["status"]["reservedFor"]
        await world.delete(PODS, "p", grace_s=0)
        await world.wait(70)
        assert not (await claim(world, "c")).get("status")
        held.release()


async def test_a_pod_made_again_keeps_its_reservation_while_the_cache_shows_the_earlier_one(world: World):
    """Claims and pods come by different watches: the devices of a pod that runs must not be given to another one."""
    await make_claim(world)
    held = Held(world.server.transport(), world.clock, "/api/v1/pods")
    await world.pod("p", by_name("c") | NOWHERE)
    async with running(world, transport=held):
        await world.wait(1)
        held.hold()
        await world.delete(PODS, "p", grace_s=0)
        await world.pod("p", by_name("c") | NOWHERE)
        await allocate(world, "c", "p")
        before = (await claim(world, "c"))["status"]
        await world.wait(5)
        assert (await claim(world, "c")).get("status") == before
        held.release()
        await world.wait(5)
        assert (await claim(world, "c")).get("status") == before


async def test_a_pod_made_again_keeps_its_claim_while_the_cache_shows_the_earlier_one(world: World):
    """As the claim for its extended resources, which the scheduler creates."""
    held = Held(world.server.transport(), world.clock, "/api/v1/pods")
    await world.pod("p", NOWHERE)
    async with running(world, transport=held):
        await world.wait(1)
        held.hold()
        await world.delete(PODS, "p", grace_s=0)
        await world.pod("p", NOWHERE)
        uid = (await world.get(PODS, "p"))["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": True}
        metadata = {"name": "extended", "ownerReferences": [owner]}
        await world.create(RESOURCE_CLAIMS, {"metadata": metadata, "spec": claim_spec()})
        await world.wait(5)
        assert [made["metadata"]["name"] for made in await claims(world)] == ["extended"]
        held.release()
        await world.wait(5)
        assert [made["metadata"]["name"] for made in await claims(world)] == ["extended"]


async def test_a_claim_generated_for_an_earlier_pod_of_the_name_is_deleted(world: World):
    await world.pod("p", NOWHERE)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "controller": True}
    uid = (await world.get(PODS, "p"))["metadata"]["uid"]
    for name, owner_uid in (("earlier", "another"), ("mine", uid)):
        metadata = {"name": name, "ownerReferences": [owner | {"uid": owner_uid}]}
        await world.create(RESOURCE_CLAIMS, {"metadata": metadata, "spec": claim_spec()})
    async with running(world):
        await world.wait(2)
        assert [made["metadata"]["name"] for made in await claims(world)] == ["mine"]


@pytest.mark.parametrize("groups", [True, False])
async def test_consumers_other_than_pods_keep_their_reservation(world: World, groups):
    await serve(world, POD_GROUPS, status={})
    gates = GROUPS if groups else []
    await make_claim(world)
    await allocate(world, "c")
    doc = await claim(world, "c")
    doc["status"]["reservedFor"] = [{"apiGroup": "example.com", "resource": "widgets", "name": "w", "uid": "u"}]
    await world.client.update(RESOURCE_CLAIMS, "default", "c", doc, subresource="status")
    async with running(world, gates=gates):
        await world.wait(2)
        assert (await claim(world, "c"))["status"] == doc["status"]


async def test_an_unused_deleted_claim_loses_its_finalizer(world: World):
    await make_claim(world)
    await allocate(world, "c")
    await world.delete(RESOURCE_CLAIMS, "c")
    assert (await claim(world, "c"))["metadata"]["deletionTimestamp"]
    async with running(world):
        await world.wait(2)
        assert await world.is_deleted("c", RESOURCE_CLAIMS)


async def test_a_manually_bound_pod_gets_its_claim_reserved(world: World):
    await make_claim(world)
    await allocate(world, "c")
    async with running(world):
        await world.pod("p", by_name("c") | {"nodeName": "node-1"})
        await world.wait(2)
        users = (await claim(world, "c"))["status"]["reservedFor"]
        assert [(user["resource"], user["name"]) for user in users] == [("pods", "p")]


async def test_a_claim_that_cannot_be_decoded_keeps_no_other_one_from_being_reserved(world: World):
    for name in ("a", "b"):
        await make_claim(world, name)
        await allocate(world, name)
    store = world.server.store
    odd = store.get(RESOURCE_CLAIMS.gvr, "default", "a").copy()
    store.update(RESOURCE_CLAIMS.gvr, "default", "a", {**odd, "spec": "none"})
    entries = [{"name": name, "resourceClaimName": name} for name in ("a", "b")]
    async with running(world):
        await world.pod("p", by_name("b") | {"resourceClaims": entries, "nodeName": "node-1"})
        await world.wait(5)
        users = store.get(RESOURCE_CLAIMS.gvr, "default", "b").copy()["status"].get("reservedFor", [])
        assert [user["name"] for user in users] == ["p"]


async def test_nothing_is_reserved_for_a_pod_that_ended_while_its_claims_were_created(world: World):
    reserved: list[bytes] = []

    async def before(request: Request) -> None:
        if request.method == "POST" and request.path.endswith("/resourceclaims"):
            await ends(world, "p", "Failed")
            await world.wait(1)
        if request.method == "PUT" and b'"reservedFor"' in request.body:
            reserved.append(request.body)

    await make_template(world)
    await make_claim(world, "c")
    await allocate(world, "c")
    entries = [*from_template()["resourceClaims"], {"name": "f", "resourceClaimName": "c"}]
    async with running(world, transport=Refusing(world.server.transport(), lambda request: False, before)):
        await world.wait(2)
        await world.pod("p", from_template() | {"resourceClaims": entries, "nodeName": "nowhere"})
        await world.wait(10)
        assert (await world.status("p"))["phase"] == "Failed"
        assert reserved == []


async def test_the_claim_for_extended_resources_is_freed_with_its_pod(world: World):
    await make_claim(world)
    resources = {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}
    container = {"name": "c", "image": "nginx", "resources": resources}
    await world.pod("p", {"containers": [container]} | NOWHERE)
    await allocate(world, "c", "p")
    mapping = {"containerName": "c", "resourceName": "example.com/gpu", "requestName": "r"}
    extended = {"resourceClaimName": "c", "requestMappings": [mapping]}
    body = {"status": {"extendedResourceClaimStatus": extended}}
    await world.client.patch(PODS, "default", "p", body, subresource="status")
    async with running(world):
        await world.wait(1)
        assert (await claim(world, "c"))["status"]["allocation"]
        await world.delete(PODS, "p", grace_s=0)
        await world.wait(1)
        assert "allocation" not in (await claim(world, "c")).get("status", {})


async def test_a_template_with_alternatives_needs_its_gate(world: World):
    request = {"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "gpu"}]}
    doc = {"metadata": {"name": "t"}, "spec": {"spec": {"devices": {"requests": [request]}}}}
    await world.create(RESOURCE_CLAIM_TEMPLATES, doc)
    await world.pod("p", from_template() | NOWHERE)
    async with running(world, gates=[("", "DRAPrioritizedList=false")]):
        await world.wait(1)
        what = "template includes a prioritized list of subrequests, but the feature is disabled"
        assert ("FailedResourceClaimCreation", f"PodResourceClaim e: {what}") in await world.events("p")
    async with running(world):
        await world.wait(1)
        assert len(await claims(world)) == 1


async def test_a_template_with_admin_access_needs_its_gate(world: World):
    labels = {"resource.kubernetes.io/admin-access": "true"}
    await world.client.patch(NAMESPACES, "", "default", {"metadata": {"labels": labels}})
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "adminAccess": True}}
    doc = {"metadata": {"name": "t"}, "spec": {"spec": {"devices": {"requests": [request]}}}}
    await world.create(RESOURCE_CLAIM_TEMPLATES, doc)
    await world.pod("p", from_template() | NOWHERE)
    async with running(world, emulated="1.35", gates=[("", "DRAAdminAccess=false")]):
        await world.wait(1)
        what = "admin access is requested, but the feature is disabled"
        assert ("FailedResourceClaimCreation", f"PodResourceClaim e: {what}") in await world.events("p")
        assert await claims(world) == []
    async with running(world):
        await world.wait(1)
        assert len(await claims(world)) == 1


async def test_the_claim_of_a_pod_group_is_kept_until_the_group_is_deleted(world: World):
    await serve(world, POD_GROUPS, status={})
    await make_template(world)
    async with running(world, gates=GROUPS):
        await make(world, POD_GROUPS, {"metadata": {"name": "g"}, "spec": from_template()})
        await world.wait(3)
        (made,) = await claims(world)
        name, group = made["metadata"]["name"], await world.get(POD_GROUPS, "g")
        uid = group["metadata"]["uid"]
        ref = {
            "apiVersion": POD_GROUPS.api_version,
            "kind": "PodGroup",
            "name": "g",
            "uid": uid,
            "controller": True,
        }
        assert made["metadata"]["ownerReferences"] == [ref]
        assert group["status"] == {"resourceClaimStatuses": [{"name": "e", "resourceClaimName": name}]}
        await allocate(world, name)
        doc = await claim(world, name)
        user = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": uid}
        doc["status"]["reservedFor"] = [user]
        await world.client.update(RESOURCE_CLAIMS, "default", name, doc, subresource="status")
        await world.wait(1)
        assert (await claim(world, name))["status"]["reservedFor"] == [user]
        await world.delete(POD_GROUPS, "g")
        await world.wait(1)
        assert "allocation" not in (await claim(world, name)).get("status", {})
