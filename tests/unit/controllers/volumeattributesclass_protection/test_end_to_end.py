"""The controller in a whole sandbox, on virtual time."""

import pytest

from tests.kit.controlling import controllers
from tests.kit.faults import Held, Refusing
from tests.kit.world import World, resource

CLASSES = resource("volumeattributesclasses", "storage.k8s.io", namespaced=False)
CLAIMS = resource("persistentvolumeclaims")
VOLUMES = resource("persistentvolumes", namespaced=False)
NAME = "volumeattributesclass-protection-controller"
SIZE = {"requests": {"storage": "1Gi"}}


async def make(world: World, name: str, **metadata) -> None:
    doc = {"metadata": {"name": name, **metadata}, "driverName": "d.example.com", "parameters": {"iops": "1"}}
    await world.create(CLASSES, doc)


async def claim(world: World, name: str, class_: str) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": SIZE, "storageClassName": "none", "volumeName": "none"}
    await world.create(CLAIMS, {"metadata": {"name": name}, "spec": {**spec, "volumeAttributesClassName": class_}})


async def volume(world: World, name: str, class_: str) -> None:
    source = {"driver": "d.example.com", "volumeHandle": "h"}
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "csi": source}
    await world.create(VOLUMES, {"metadata": {"name": name}, "spec": {**spec, "volumeAttributesClassName": class_}})


async def drop(world: World, kind, name: str) -> None:
    await world.patch(kind, name, {"metadata": {"finalizers": None}})
    await world.delete(kind, name)


async def test_a_class_gets_the_finalizer_beside_others(world: World):
    await make(world, "gold", finalizers=["example.com/keep"])
    async with controllers(world, names=[NAME]):
        await world.wait(2)
        made = await world.get(CLASSES, "gold")
        assert made["metadata"]["finalizers"] == ["example.com/keep", "kubernetes.io/vac-protection"]
        assert made["parameters"] == {"iops": "1"}


async def test_a_class_is_deleted_after_its_last_user(world: World):
    for name in ("free", "claimed", "held", "both"):
        await make(world, name)
    await claim(world, "c", "claimed")
    await volume(world, "v", "held")
    await claim(world, "c2", "both")
    await volume(world, "v2", "both")

    async def deleted() -> list[str]:
        await world.wait(2)
        return [name for name in ("free", "claimed", "held", "both") if await world.is_deleted(name, CLASSES)]

    async with controllers(world, names=[NAME]):
        await world.wait(2)
        for name in ("free", "claimed", "held", "both"):
            await world.delete(CLASSES, name)
        assert await deleted() == ["free"]
        await drop(world, CLAIMS, "c")
        assert await deleted() == ["free", "claimed"]
        await drop(world, VOLUMES, "v")
        await drop(world, CLAIMS, "c2")
        assert await deleted() == ["free", "claimed", "held"]
        await drop(world, VOLUMES, "v2")
        assert await deleted() == ["free", "claimed", "held", "both"]


async def test_a_class_is_freed_when_its_claim_has_another(world: World):
    await make(world, "old")
    await claim(world, "c", "old")
    moving = {"modifyVolumeStatus": {"status": "InProgress", "targetVolumeAttributesClassName": "new"}}
    status = {"phase": "Bound", "currentVolumeAttributesClassName": "old", **moving}
    await world.client.patch(CLAIMS, "default", "c", {"status": status}, subresource="status")
    async with controllers(world, names=[NAME]):
        await world.wait(2)
        await world.delete(CLASSES, "old")
        await world.patch(CLAIMS, "c", {"spec": {"volumeAttributesClassName": "new"}})
        await world.wait(2)
        assert not await world.is_deleted("old", CLASSES)
        done = {"currentVolumeAttributesClassName": "new", "modifyVolumeStatus": None}
        await world.client.patch(CLAIMS, "default", "c", {"status": done}, subresource="status")
        await world.wait(2)
        assert await world.is_deleted("old", CLASSES)


async def test_a_lost_write_is_retried(world: World):
    await make(world, "gold")
    transport = Refusing(world.server.transport(), lambda request: request.method == "PUT" and not transport.refused)
    async with controllers(world, names=[NAME], transport=transport):
        await world.wait(2)
        await world.delete(CLASSES, "gold")
        await world.wait(2)
        assert await world.is_deleted("gold", CLASSES)
        assert transport.refused == 1


@pytest.mark.parametrize(("kind", "use"), [(CLAIMS, claim), (VOLUMES, volume)], ids=["claim", "volume"])
async def test_a_class_is_kept_for_a_user_that_the_cache_does_not_show(world: World, kind, use):
    await make(world, "gold")
    held = Held(world.server.transport(), world.clock, kind.gvr.path(""))
    async with controllers(world, names=[NAME], transport=held):
        await world.wait(2)
        held.hold()
        await use(world, "u", "gold")
        await world.delete(CLASSES, "gold")
        await world.wait(5)
        assert not await world.is_deleted("gold", CLASSES)
        await drop(world, kind, "u")
        await world.wait(70)
        assert await world.is_deleted("gold", CLASSES)
        held.release()
