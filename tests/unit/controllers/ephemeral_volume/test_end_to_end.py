"""The controller in a whole sandbox, on virtual time."""

from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.ephemeral_volume.config import EphemeralVolumeConfig
from tests.kit.controlling import controllers
from tests.kit.faults import Refusing
from tests.kit.world import World, resource

CLAIMS = resource("persistentvolumeclaims")
NAME = "ephemeral-volume-controller"
CONFIG = EphemeralVolumeConfig()
SPEC = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "none"}


def volumes(*names: str) -> dict:
    template = {"metadata": {"labels": {"of": "pod"}}, "spec": SPEC}
    return {"volumes": [{"name": name, "ephemeral": {"volumeClaimTemplate": template}} for name in names]}


async def test_each_ephemeral_volume_gets_a_claim_which_is_recreated(world: World):
    async with controllers(world, CONFIG, names=[NAME]):
        await world.pod("p", volumes("a", "b"))
        await world.wait(2)
        first = await world.get(CLAIMS, "p-a")
        assert (first["metadata"]["labels"], first["spec"]["resources"]) == ({"of": "pod"}, SPEC["resources"])
        assert not await world.is_deleted("p-b", CLAIMS)
        await world.patch(CLAIMS, "p-a", {"metadata": {"finalizers": None}})
        await world.delete(CLAIMS, "p-a")
        await world.wait(2)
        assert (await world.get(CLAIMS, "p-a"))["metadata"]["uid"] != first["metadata"]["uid"]


async def test_a_claim_of_another_owner_is_an_error_until_it_is_deleted(world: World):
    await world.create(CLAIMS, {"metadata": {"name": "p-a"}, "spec": SPEC})
    async with controllers(world, CONFIG, names=[NAME]):
        await world.pod("p", volumes("a", "b"))
        await world.wait(2)
        assert await world.is_deleted("p-b", CLAIMS)
        text = "ephemeral volume a: PVC default/p-a was not created for pod default/p (pod is not owner)"
        assert ("FailedBinding", text) in await world.events("p")
        await world.patch(CLAIMS, "p-a", {"metadata": {"finalizers": None}})
        await world.delete(CLAIMS, "p-a")
        await world.wait(2)
        owners = (await world.get(CLAIMS, "p-a"))["metadata"]["ownerReferences"]
        assert owners[0]["name"] == "p"
        assert not await world.is_deleted("p-b", CLAIMS)


async def test_lost_requests_are_counted_and_retried(world: World):
    left = [2]

    def loses(request) -> bool:
        if request.method != "POST" or not request.path.endswith("/persistentvolumeclaims") or not left[0]:
            return False
        left[0] -= 1
        return True

    metrics = Registry()
    transport = Refusing(world.server.transport(), loses)
    async with controllers(world, CONFIG, names=[NAME], transport=transport, metrics=metrics):
        await world.pod("p", volumes("a"))
        await world.wait(5)
        assert not await world.is_deleted("p-a", CLAIMS)
        page = metrics.expose().decode()
        assert "\nephemeral_volume_controller_create_total 3" in page
        assert "\nephemeral_volume_controller_create_failures_total 2" in page
        text = "ephemeral volume a: create PVC p-a: the connection was lost"
        assert ("FailedBinding", text) in await world.events("p")
