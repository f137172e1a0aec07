"""The controller in a whole sandbox, on virtual time."""

import pytest

from kcm_cli.planning.certificate_requests import CLIENT
from tests.kit.controlling import controllers
from tests.kit.faults import Refusing
from tests.kit.world import World, resource
from tests.unit.planning.certificates import in_base64, request

REQUESTS = resource("certificatesigningrequests", "certificates.k8s.io", namespaced=False)
HOUR_S = 3600.0


@pytest.mark.cluster(alone=True)
async def test_a_pending_request_is_deleted_after_a_day_also_if_a_pass_fails(world: World):
    spec = {"signerName": CLIENT, "usages": ["client auth"], "request": in_base64(request())}
    await world.create(REQUESTS, {"metadata": {"name": "old"}, "spec": spec})
    broken = [True]
    transport = Refusing(world.server.transport(), lambda sent: broken[0] and sent.method == "DELETE")
    async with controllers(world, names=["certificatesigningrequest-cleaner-controller"], transport=transport):
        await world.wait(24 * HOUR_S)
        assert not transport.refused
        await world.wait(2 * HOUR_S)
        assert transport.refused
        broken[0] = False
        await world.wait(2 * HOUR_S)
        assert await world.is_deleted("old", REQUESTS)
