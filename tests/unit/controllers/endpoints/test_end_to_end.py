"""The controller in a whole sandbox, on virtual time."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from kcm_cli.controllers.endpoints.config import EndpointsConfig
from kcm_cli.rest.transport import Request, Response, Stream
from tests.kit.controlling import controllers
from tests.kit.faults import Held, Noting, Refusing
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


class Lagging(Held):
    """The first look at Endpoints waits until something has happened that watches of Services do not show."""

    def __init__(self, world: World, happens: Callable[[], Awaitable[None]]) -> None:
        super().__init__(world.server.transport(), world.clock, "/api/v1/services")
        self._happens = happens
        self._once = asyncio.Lock()
        self.happened = False

    async def send(self, request: Request) -> Response:
        await self._before(request)
        return await super().send(request)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        await self._before(request)
        async with super().stream(request) as stream:
            yield stream

    async def _before(self, request: Request) -> None:
        if request.path == "/api/v1/endpoints":
            async with self._once:
                if not self.happened:
                    await self._clock.sleep(5)
                    self.hold()
                    await self._happens()
                    self.happened = True


async def test_endpoints_are_kept_whose_service_the_cache_does_not_show_yet(world: World):
    """Both were created while the manager started."""

    async def make() -> None:
        await world.create(SERVICES, {**NAME, "spec": {"ports": [{"port": 80}]}})
        await world.create(ENDPOINTS, {**NAME, "subsets": SUBSETS})

    transport = Lagging(world, make)
    async with controllers(world, EndpointsConfig(), names=["endpoints-controller"], transport=transport):
        await world.wait(30)
        assert transport.happened
        assert not await world.is_deleted("web", ENDPOINTS)
        transport.release()
        await world.wait(30)
        assert (await world.get(ENDPOINTS, "web"))["subsets"] == SUBSETS


async def test_endpoints_that_no_cache_shows_yet_are_kept_with_their_service(world: World):
    """Both were created after the deletion of a Service of the name, whose Endpoints are to be deleted."""

    asked = list[str]()

    async def before(request: Request) -> None:
        if not asked and request.path.endswith(("/services/web", "/endpoints/web")):
            asked.append(request.path)
            await world.create(SERVICES, {**NAME, "spec": {"ports": [{"port": 80}]}})
            await world.create(ENDPOINTS, {**NAME, "subsets": SUBSETS})

    transport = Refusing(world.server.transport(), lambda request: False, before)
    await world.create(SERVICES, {**NAME, "spec": {"ports": [{"port": 80}]}})
    async with controllers(world, EndpointsConfig(), names=["endpoints-controller"], transport=transport):
        await world.wait(5)
        await world.delete(SERVICES, "web")
        await world.wait(5)
        assert asked
        assert (await world.get(ENDPOINTS, "web"))["subsets"] == SUBSETS


async def test_endpoints_without_a_service_may_be_replaced(world: World):
    """Their deletion asks for no other one: their user may have created them again."""
    noting = Noting(world.server.transport())
    async with controllers(world, EndpointsConfig(), names=["endpoints-controller"], transport=noting):
        await world.wait(5)
        await world.create(ENDPOINTS, NAME)
        await world.wait(5)
        await world.delete(ENDPOINTS, "web")
        await world.create(ENDPOINTS, {**NAME, "subsets": SUBSETS})
        await world.wait(5)
        assert noting.written() == []


async def test_endpoints_that_someone_deletes_are_created_again(world: World):
    async with controllers(world, EndpointsConfig(), names=["endpoints-controller"]):
        await world.create(SERVICES, {**NAME, "spec": {"ports": [{"port": 80}], "selector": {"app": "web"}}})
        await world.wait(5)
        await world.delete(ENDPOINTS, "web")
        await world.wait(5)
        assert not await world.is_deleted("web", ENDPOINTS)


async def test_endpoints_without_a_service_are_deleted_at_the_start(world: World):
    await world.create(ENDPOINTS, NAME)
    async with controllers(world, EndpointsConfig(), names=["endpoints-controller"]):
        await world.wait(5)
        assert await world.is_deleted("web", ENDPOINTS)
