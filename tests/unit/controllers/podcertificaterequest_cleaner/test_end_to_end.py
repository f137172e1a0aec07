"""The controller in a whole sandbox, on virtual time."""

from kcm_cli.api.certificates import POD_CERTIFICATE_REQUESTS
from tests.kit.alpha import make, serve
from tests.kit.controlling import controllers
from tests.kit.faults import Refusing
from tests.kit.world import World

MINUTE_S = 60.0


async def test_requests_are_deleted_after_15_minutes_also_if_a_pass_fails(world: World):
    await serve(world, POD_CERTIFICATE_REQUESTS)
    await make(world, POD_CERTIFICATE_REQUESTS, {"metadata": {"name": "old"}})
    broken = [True]
    transport = Refusing(world.server.transport(), lambda sent: broken[0] and sent.method == "DELETE")
    async with controllers(world, names=["podcertificaterequest-cleaner-controller"], transport=transport):
        await world.wait(12 * MINUTE_S)
        await make(world, POD_CERTIFICATE_REQUESTS, {"metadata": {"name": "new"}})
        assert not transport.refused
        await world.wait(6 * MINUTE_S)
        assert transport.refused
        broken[0] = False
        await world.wait(5 * MINUTE_S)
        assert await world.is_deleted("old", POD_CERTIFICATE_REQUESTS)
        assert not await world.is_deleted("new", POD_CERTIFICATE_REQUESTS)
        await world.wait(10 * MINUTE_S)
        assert await world.is_deleted("new", POD_CERTIFICATE_REQUESTS)
