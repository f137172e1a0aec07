"""The controller in a whole sandbox, on virtual time."""

from tests.kit.controlling import controllers
from tests.kit.world import World, resource

VOLUMES = resource("persistentvolumes", namespaced=False)
NAME = "persistentvolume-protection-controller"


async def set_phase(world: World, name: str, phase: str) -> None:
    await world.client.patch(VOLUMES, "", name, {"status": {"phase": phase}}, subresource="status")


async def test_a_volume_is_deleted_when_it_is_not_bound(world: World):
    for name in ("free", "bound"):
        spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
        await world.create(VOLUMES, {"metadata": {"name": name}, "spec": spec})
    await set_phase(world, "bound", "Bound")
    await world.patch(VOLUMES, "bound", {"metadata": {"finalizers": None}})
    async with controllers(world, names=[NAME]):
        await world.wait(5)
        for name in ("free", "bound"):
            await world.delete(VOLUMES, name)
        await world.wait(5)
        assert (await world.is_deleted("free", VOLUMES), await world.is_deleted("bound", VOLUMES)) == (True, False)
        await set_phase(world, "bound", "Released")
        await world.wait(5)
        assert await world.is_deleted("bound", VOLUMES)
