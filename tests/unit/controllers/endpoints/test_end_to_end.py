"""The controller in a whole sandbox, on virtual time."""

import pytest

from kcm_cli.controllers.endpoints.config import EndpointsConfig
from kcm_cli.rest.transport import Request
from tests.kit.controlling import controllers
from tests.kit.faults import Refusing
from tests.kit.world import World, resource

pytestmark = pytest.mark.cluster(alone=True)

ENDPOINTS, SERVICES = resource("endpoints"), resource("services")
NAME = {"metadata": {"name": "web"}}
SUBSETS = [{"addresses": [{"ip": "10.9.9.9"}], "ports": [{"port": 80, "protocol": "TCP"}]}]


async def test_endpoints_of_a_service_that_was_created_again_are_kept(world: World):
    """A Service without a selector and its Endpoints are created while the deletion of leftover ones waits."""
    came = list[str]()

    async def before(request: Request) -> None:
        if not came and (request.method, request.path.rpartition("/")[2]) == ("DELETE", "web"):
            came.append(request.path)
            await world.delete(ENDPOINTS, "web")
            await world.create(SERVICES, {**NAME, "spec": {"ports": [{"port": 80}]}})
            await world.create(ENDPOINTS, {**NAME, "subsets": SUBSETS})

    await world.create(ENDPOINTS, NAME)
    transport = Refusing(world.server.transport(), lambda request: False, before)
    async with controllers(world, EndpointsConfig(), names=["endpoints-controller"], transport=transport):
        await world.wait(60)
        assert len(came) == 1
        assert (await world.get(ENDPOINTS, "web"))["subsets"] == SUBSETS


async def test_endpoints_without_a_service_are_deleted_at_the_start(world: World):
    await world.create(ENDPOINTS, NAME)
    async with controllers(world, EndpointsConfig(), names=["endpoints-controller"]):
        await world.wait(5)
        assert await world.is_deleted("web", ENDPOINTS)
