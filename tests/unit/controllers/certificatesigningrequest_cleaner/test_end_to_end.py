"""The controller in a whole sandbox, on virtual time."""

import pytest

from kcm_cli.planning.certificate_requests import CLIENT
from tests.kit.controlling import controllers
from tests.kit.faults import Meanwhile, Refusing
from tests.kit.world import World, resource
from tests.unit.planning.certificates import in_base64, request

REQUESTS = resource("certificatesigningrequests", "certificates.k8s.io", namespaced=False)
HOUR_S = 3600.0
OLD = {
    "metadata": {"name": "old"},
    "spec": {"signerName": CLIENT, "usages": ["client auth"], "request": in_base64(request())},
}


@pytest.mark.cluster(alone=True)
async def test_a_pending_request_is_deleted_after_a_day_also_if_a_pass_fails(world: World):
    await world.create(REQUESTS, OLD)
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


@pytest.mark.cluster(alone=True)
async def test_a_request_that_is_approved_just_before_its_deletion_is_kept(world: World):
    """A pass over thousands of requests takes minutes."""
    await world.create(REQUESTS, OLD)

    async def approve() -> None:
        doc = await world.get(REQUESTS, "old", "")
        condition = {"type": "Approved", "status": "True", "reason": "r"}
        await world.client.update(
            REQUESTS, "", "old", doc | {"status": {"conditions": [condition]}}, subresource="approval"
        )

    transport = Meanwhile(world.server.transport(), "DELETE", "/old", approve)
    async with controllers(world, names=["certificatesigningrequest-cleaner-controller"], transport=transport):
        await world.wait(26 * HOUR_S)
        assert transport.happened and not await world.is_deleted("old", REQUESTS)
        await world.wait(25 * HOUR_S)
        assert await world.is_deleted("old", REQUESTS)
