"""The controller in a sandbox, on virtual time."""

from contextlib import AbstractAsyncContextManager

import pytest

from kcm_cli.controllers.endpointslice_mirroring.config import EndpointSliceMirroringConfig
from tests.kit.controlling import controllers
from tests.kit.world import World, resource

pytestmark = pytest.mark.cluster(alone=True)

SERVICES = resource("services")
ENDPOINTS = resource("endpoints")
SLICES = resource("endpointslices", "discovery.k8s.io")


class Story:
    """A Service ``s`` without a selector, and its Endpoints."""

    def __init__(self, world: World) -> None:
        self.world = world

    def running(self) -> AbstractAsyncContextManager[None]:
        return controllers(self.world, EndpointSliceMirroringConfig(), names=["endpointslice-mirroring-controller"])

    async def make(self) -> None:
        await self.world.create(SERVICES, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
        await self.endpoints()

    async def endpoints(self, address: str = "10.9.0.1") -> None:
        subset = {"addresses": [{"ip": address}], "ports": [{"port": 80}]}
        await self.world.create(ENDPOINTS, {"metadata": {"name": "s"}, "subsets": [subset]})

    async def hold(self) -> str:
        """Give the slice a finalizer, so that it stays when it is deleted; its name."""
        (name,) = await self.slices()
        await self.world.patch(SLICES, name, {"metadata": {"finalizers": ["example.com/wait"]}})
        return name

    async def slices(self) -> dict[str, list[str]]:
        """The addresses in slices that are not being deleted."""
        found = {}
        for item in await self.world.items(SLICES):
            service = item["metadata"]["labels"]["kubernetes.io/service-name"]
            if service == "s" and "deletionTimestamp" not in item["metadata"]:
                found[item["metadata"]["name"]] = [each["addresses"][0] for each in item["endpoints"]]
        return found


@pytest.fixture
def story(world: World) -> Story:
    return Story(world)


async def test_a_slice_that_is_being_deleted_is_replaced(world: World, story: Story):
    async with story.running():
        await story.make()
        await world.wait(3)
        held = await story.hold()
        await world.delete(SLICES, held)
        await world.wait(3)
        assert list((await story.slices()).values()) == [["10.9.0.1"]]
        await world.patch(ENDPOINTS, "s", {"subsets": [{"addresses": [{"ip": "10.9.0.2"}], "ports": [{"port": 80}]}]})
        await world.wait(3)
        assert list((await story.slices()).values()) == [["10.9.0.2"]]


async def test_endpoints_that_are_recreated_are_mirrored_though_a_former_slice_stays(world: World, story: Story):
    async with story.running():
        await story.make()
        await world.wait(3)
        await story.hold()
        await world.delete(ENDPOINTS, "s")
        await world.wait(3)
        assert await story.slices() == {}
        await story.endpoints("10.9.0.2")
        await world.wait(3)
        assert list((await story.slices()).values()) == [["10.9.0.2"]]
