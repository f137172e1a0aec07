"""The controller in a whole sandbox, on virtual time."""

import json
import random
from dataclasses import replace

import pytest

from kcm_cli.component.metrics import Registry
from kcm_cli.planning.actions import MERGE
from kcm_cli.rest.transport import Request, Response
from tests.kit.controlling import Faulty, controllers, metric
from tests.kit.faults import Held, Noting, Refusing, Rewriting
from tests.kit.world import World
from tests.unit.controllers.persistentvolume_binder.storage import (
    CLAIMS,
    CLASSES,
    CONFIG,
    NAME,
    VOLUMES,
    make_claim,
    make_class,
    make_volume,
    phase,
    remove,
)

BOTH = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}


def writes_of(request: Request) -> bool:
    return request.method == "PUT" and "/persistentvolume" in request.path


async def settled(world: World, volume: str = "v", claim: str = "c") -> None:
    """Both halves say that they are bound to each other."""
    given, wanted = await world.get(VOLUMES, volume), await world.get(CLAIMS, claim)
    assert given["spec"]["claimRef"]["uid"] == wanted["metadata"]["uid"]
    assert (given["status"]["phase"], wanted["status"]["phase"]) == ("Bound", "Bound")
    assert wanted["spec"]["volumeName"] == volume
    assert wanted["status"]["capacity"] == given["spec"]["capacity"]


async def test_a_claim_is_bound_in_four_writes(world: World):
    await make_volume(world, "v", "5Gi")
    noting = Noting(world.server.transport())
    async with controllers(world, CONFIG, names=[NAME], transport=noting):
        await world.wait(5)
        assert await phase(world, VOLUMES, "v") == "Available"
        noting.sent.clear()
        await make_claim(world, "c")
        await world.wait(60)
        await settled(world)
        assert (await world.get(CLAIMS, "c"))["metadata"]["annotations"] == BOTH
    assert [request.path.rpartition("/")[2] for request in noting.sent if writes_of(request)] == [
        "v",
        "status",
        "c",
        "status",
    ]


@pytest.mark.parametrize("lost", range(4))
async def test_a_binding_with_lost_answers_is_completed(world: World, lost):
    puts = 0

    def dies(request: Request) -> bool:
        nonlocal puts
        if not writes_of(request):
            return False
        puts += 1
        return puts == 2 + lost  # the first one makes the volume available

    await make_volume(world, "v")
    await make_claim(world, "c")
    transport = Refusing(world.server.transport(), dies)
    async with controllers(world, CONFIG, names=[NAME], transport=transport):
        await world.wait(60)
        await settled(world)
    assert transport.refused == 1


@pytest.mark.parametrize("seed", range(5))
async def test_under_random_faults_no_volume_is_bound_twice(world: World, seed):
    for n in range(6):
        await make_volume(world, f"v{n}", f"{1 + n % 3}Gi")
    transport = Faulty(world.server.transport(), random.Random(seed), 0.3)
    async with controllers(world, CONFIG, names=[NAME], transport=transport):
        for n in range(8):
            await make_claim(world, f"c{n}", f"{1 + n % 2}Gi")
        await world.wait(300)
    assert transport.faults
    volumes = {item["metadata"]["name"]: item for item in await world.items(VOLUMES)}
    bound = [item for item in await world.items(CLAIMS) if item["status"]["phase"] == "Bound"]
    assert len(bound) == 6
    for item in bound:
        ref = volumes.pop(item["spec"]["volumeName"])["spec"]["claimRef"]
        assert ref["uid"] == item["metadata"]["uid"]


async def test_two_managers_do_not_undo_each_other(world: World):
    for n in range(4):
        await make_volume(world, f"v{n}")
    async with controllers(world, CONFIG, names=[NAME]), controllers(world, CONFIG, names=[NAME]):
        for n in range(4):
            await make_claim(world, f"c{n}")
        await world.wait(120)
    claims = await world.items(CLAIMS)
    assert {item["status"]["phase"] for item in claims} == {"Bound"}
    assert len({item["spec"]["volumeName"] for item in claims}) == 4


async def test_a_late_watch_causes_no_write(world: World):
    await make_volume(world, "v")
    noting = Noting(world.server.transport())
    held = Held(noting, world.clock, "/api/v1/persistentvolumes", since=writes_of)
    async with controllers(world, CONFIG, names=[NAME], transport=held):
        await make_claim(world, "c")
        await world.wait(60)
        await settled(world)
        held.release()
        await world.wait(30)
    assert len([request for request in noting.sent if writes_of(request)]) == 5


async def test_a_reserved_volume_is_kept_and_a_named_one_is_bound(world: World):
    await make_volume(world, "big", "9Gi", claimRef={"namespace": "default", "name": "a"})
    await make_volume(world, "small")
    async with controllers(world, CONFIG, names=[NAME]):
        await world.wait(5)
        await make_claim(world, "a")
        await make_claim(world, "b", volumeName="small")
        await make_claim(world, "late", volumeName="big")
        await world.wait(60)
        await settled(world, "big", "a")
        await settled(world, "small", "b")
        assert await phase(world, CLAIMS, "late") == "Pending"
        message = 'volume "big" already bound to a different claim.'
        assert ("FailedBinding", message) in await world.events("late")


async def test_a_claim_whose_volume_is_deleted_is_lost_and_reported_once(world: World):
    await make_volume(world, "v")
    await make_claim(world, "c")
    async with controllers(world, CONFIG, names=[NAME]):
        await world.wait(30)
        await settled(world)
        await remove(world, VOLUMES, "v")
        await world.wait(60)
        assert (await world.get(CLAIMS, "c"))["status"] == {"phase": "Lost"}
        assert [reason for reason, _ in await world.events("c")].count("ClaimLost") == 1


@pytest.mark.parametrize("known", [False, True], ids=["not there", "reserved for another claim"])
async def test_a_claim_is_not_lost_while_the_cache_is_behind_its_volume(world: World, known):
    """As when both are restored from a backup: they come by different watches."""
    held = Held(world.server.transport(), world.clock, "/api/v1/persistentvolumes")
    if known:
        await make_volume(world, "v", claimRef={"namespace": "default", "name": "c", "uid": "earlier"})
    async with controllers(world, CONFIG, names=[NAME], transport=held):
        await world.wait(1)
        held.hold()
        done = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
        if known:
            await make_claim(world, "c", volumeName="v")
            uid = (await world.get(CLAIMS, "c"))["metadata"]["uid"]
            await world.patch(VOLUMES, "v", {"spec": {"claimRef": {"uid": uid}}})
            await world.patch(CLAIMS, "c", {"metadata": done})
        else:
            await make_claim(world, "c", volumeName="v", metadata=done)
            uid = (await world.get(CLAIMS, "c"))["metadata"]["uid"]
            await make_volume(world, "v", claimRef={"namespace": "default", "name": "c", "uid": uid})
        await world.wait(30)
        assert await phase(world, CLAIMS, "c") == "Pending"
        held.release()
        await world.wait(30)
        await settled(world)
        assert "ClaimLost" not in str(await world.events("c"))
        assert "ClaimMisbound" not in str(await world.events("c"))


async def test_a_volume_whose_versions_went_back_is_bound(world: World):
    """As after a backup was restored: what was remembered is of later versions than all that there is."""
    ahead = [True]

    def later(request: Request, answer: Response) -> Response:
        if not (ahead[0] and request.method == "PUT" and request.path.endswith("/v/status")):
            return answer
        ahead[0] = False
        doc = json.loads(answer.body)
        doc["metadata"]["resourceVersion"] = "1000000"
        return Response(answer.status, answer.headers, json.dumps(doc).encode())

    async with controllers(world, CONFIG, names=[NAME], transport=Rewriting(world.server.transport(), later)):
        await make_volume(world, "v", "1Gi")
        await world.wait(5)
        assert not ahead[0] and await phase(world, VOLUMES, "v") == "Available"
        await world.patch(VOLUMES, "v", {"spec": {"capacity": {"storage": "5Gi"}}})
        await make_claim(world, "c", "5Gi")
        await world.wait(10)
        assert await phase(world, CLAIMS, "c") == "Pending"
        await world.wait(40)
        await settled(world)


@pytest.mark.parametrize("name", ["a/b", "50%", ".."])
async def test_a_claim_is_lost_that_names_what_no_volume_can_be_called(world: World, name):
    """API servers accept such a name, and have nothing to ask for by it."""
    async with controllers(world, CONFIG, names=[NAME]):
        await make_claim(world, "c", volumeName=name, metadata={"annotations": BOTH})
        await world.wait(30)
        assert await phase(world, CLAIMS, "c") == "Lost"


async def test_changes_of_the_other_object_count_at_once(world: World):
    """Not only at the next pass over all volumes and claims, every 15 s."""
    async with controllers(world, replace(CONFIG, sync_period_s=3600.0), names=[NAME]):
        await world.wait(1)
        await make_claim(world, "c")
        await world.wait(1)
        uid = (await world.get(CLAIMS, "c"))["metadata"]["uid"]
        await make_volume(world, "v", claimRef={"namespace": "default", "name": "c", "uid": uid})
        await world.wait(2)
        await settled(world)
        await remove(world, VOLUMES, "v")
        await world.wait(1)
        assert await phase(world, CLAIMS, "c") == "Lost"


async def test_an_unbound_claim_is_pending_whatever_its_status_was(world: World):
    await make_claim(world, "c", storageClassName="")
    odd = {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}}
    await world.client.patch(CLAIMS, "default", "c", odd, content_type=MERGE, subresource="status")
    async with controllers(world, CONFIG, names=[NAME]):
        await world.wait(5)
        assert (await world.get(CLAIMS, "c"))["status"] == {"phase": "Pending"}


async def test_volumes_and_claims_are_counted(world: World):
    registry = Registry()
    await make_volume(world, "v")
    await make_volume(world, "other", "9Gi", storageClassName="silver", volumeMode="Block")
    csi = {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"}
    await make_volume(world, "csi", "9Gi", storageClassName="bronze", csi=csi)
    await make_claim(world, "c")
    await make_claim(world, "waits", "20Gi")
    async with controllers(world, CONFIG, names=[NAME], metrics=registry):
        await world.wait(30)
        await settled(world)

        def count(name: str, **labels: str) -> float:
            return metric(registry, f"pv_collector_{name}", **labels)

        for mode in ("Filesystem", "Block"):
            assert count("total_pv_count", plugin_name="kubernetes.io/nfs", volume_mode=mode) == 1
        assert count("total_pv_count", plugin_name="kubernetes.io/csi:ebs.csi.aws.com") == 1
        assert count("bound_pv_count") == count("bound_pv_count", storage_class="gold") == 1
        assert count("unbound_pv_count", storage_class="silver") == 1
        assert count("unbound_pv_count", storage_class="bronze") == 1
        for state in ("bound", "unbound"):
            assert count(f"{state}_pvc_count", namespace="default", storage_class="gold") == 1


async def test_a_claim_older_than_the_default_class_gets_it(world: World):
    await world.delete(CLASSES, "standard")
    registry = Registry()
    async with controllers(world, CONFIG, names=[NAME], metrics=registry):
        await make_claim(world, "c", storageClassName=None)
        await make_claim(world, "none", storageClassName="")
        await world.wait(5)
        reasons = [reason for reason, _ in await world.events("c")]
        assert reasons == ["FailedBinding"]
        marked = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
        await make_class(world, "new", metadata=marked)
        await world.wait(20)
        assert (await world.get(CLAIMS, "c"))["spec"]["storageClassName"] == "new"
        assert (await world.get(CLAIMS, "none"))["spec"]["storageClassName"] == ""
    assert "\nretroactive_storageclass_total 1\n" in registry.expose().decode()


async def test_a_second_volume_for_a_bound_claim_is_released(world: World):
    await make_volume(world, "v")
    await make_claim(world, "c")
    async with controllers(world, CONFIG, names=[NAME]):
        await world.wait(30)
        uid = (await world.get(CLAIMS, "c"))["metadata"]["uid"]
        ref = {"namespace": "default", "name": "c", "uid": uid}
        ours = {"annotations": {"pv.kubernetes.io/bound-by-controller": "yes"}}
        await make_volume(world, "ours", claimRef=ref, metadata=ours)
        await make_volume(world, "theirs", claimRef=ref)
        await world.wait(30)
        assert "claimRef" not in (await world.get(VOLUMES, "ours"))["spec"]
        assert "uid" not in (await world.get(VOLUMES, "theirs"))["spec"]["claimRef"]
        assert {await phase(world, VOLUMES, name) for name in ("ours", "theirs")} == {"Available"}
        await settled(world)


async def test_a_recreated_claim_does_not_get_the_volume_of_the_deleted_one(world: World):
    await make_volume(world, "v")
    await make_claim(world, "c")
    async with controllers(world, CONFIG, names=[NAME]):
        await world.wait(30)
        await remove(world, CLAIMS, "c")
        await make_claim(world, "c")
        await world.wait(60)
        assert await phase(world, VOLUMES, "v") == "Released"
        assert await phase(world, CLAIMS, "c") == "Pending"
