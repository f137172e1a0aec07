"""A failed write of a status is retried without another change."""

from kcm_cli.rest.transport import Request, Response, Transport, TransportError
from tests.kit.world import PODS, World
from tests.unit.controllers.disruption.test_evictions import Story, owned_pods


class Unsent:
    """Loses every status of a budget that allows evictions, while ``failing``."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.failing = False
        self.lost = 0
        self.stream, self.close = inner.stream, inner.close

    async def send(self, request: Request) -> Response:
        if self.failing and request.method == "PUT" and b'"disruptionsAllowed":1' in request.body:
            self.lost += 1
            raise TransportError("the connection was lost")
        return await self._inner.send(request)


async def test_lost_writes_are_retried_when_the_server_is_available(world: World):
    story, transport = Story(world), Unsent(world.server.transport())
    async with story.running(transport=transport):
        await owned_pods(world, None)
        await story.budget(minAvailable=2)
        await world.wait(20)
        transport.failing = True
        unready = {"metadata": {"annotations": {"sandbox.kcm.dev/ready-delay": "never"}}}
        await world.patch(PODS, "p0", unready)
        await world.wait(2)
        await world.patch(PODS, "p0", {"metadata": {"annotations": {"sandbox.kcm.dev/ready-delay": "0s"}}})
        await world.wait(5)
        assert transport.lost > 2
        transport.failing = False
        await world.wait(30)
        assert (await story.numbers())[2:] == (3, 1)
