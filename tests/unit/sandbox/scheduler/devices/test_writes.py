"""Allocating devices in claims with lost answers and concurrent writers."""

import random
from typing import Any

import pytest

from kcm_cli.api.devices import RESOURCE_CLAIMS
from kcm_cli.rest.client import Client
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.sandbox.scheduler.devices.results import Reservation
from kcm_cli.sandbox.scheduler.devices.views import CLAIMS
from kcm_cli.sandbox.scheduler.devices.writes import ClaimProblem, ClaimWrites
from kcm_cli.sandbox.views import PODS
from tests.kit.controlling import Faulty
from tests.kit.devices import DRIVER, FINALIZER, NOWHERE, allocate, make_claim
from tests.kit.world import World

ALLOCATION: dict[str, Any] = {"devices": {"results": [{"request": "r", "driver": DRIVER, "pool": "p", "device": "d0"}]}}


class Desk:
    """The writes for a pod ``p`` and a claim ``c``, over a connection that can fail."""

    def __init__(self, world: World, share: float = 0.0) -> None:
        self.world = world
        self.transport = Faulty(world.server.transport(), random.Random(3), share)
        client = Client(self.transport, limiter=Unlimited(), user_agent="test", clock=world.clock)
        self.writes = ClaimWrites(client, world.clock)

    async def begin(self, name: str = "c") -> Reservation:
        await make_claim(self.world, name)
        return Reservation(await self.world.client.get(CLAIMS, "default", name), ALLOCATION)

    async def reserve(self, reservation: Reservation) -> None:
        await self.writes.reserve(await self.world.client.get(PODS, "default", "p"), reservation)

    async def claim(self, name: str = "c") -> dict[str, Any]:
        return await self.world.get(RESOURCE_CLAIMS, name)


async def test_a_lost_answer_is_no_failure(world: World):
    desk = Desk(world, 0.4)
    await world.pod("p", dict(NOWHERE))
    for number in range(12):
        await desk.reserve(await desk.begin(f"c{number}"))
        found = await desk.claim(f"c{number}")
        assert found["metadata"]["finalizers"] == [FINALIZER]
        assert [user["name"] for user in found["status"]["reservedFor"]] == ["p"]
        assert found["status"]["allocation"]["allocationTimestamp"]
    assert desk.transport.faults > 5


async def test_another_label_is_no_conflict(world: World):
    desk = Desk(world)
    await world.pod("p", dict(NOWHERE))
    reservation = await desk.begin()
    await world.patch(RESOURCE_CLAIMS, "c", {"metadata": {"labels": {"a": "b"}}})
    await desk.reserve(reservation)
    found = await desk.claim()
    assert found["metadata"]["labels"] == {"a": "b"} and found["status"]["allocation"]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ("allocated", "claim default/c got allocated elsewhere in the meantime"),
        ("deleted", 'add finalizer to claim default/c: resourceclaims.resource.k8s.io "c" not found'),
        ("made again", "claim default/c got deleted in the meantime"),
    ],
)
async def test_conflicting_changes_are_reported(world: World, change, text):
    desk = Desk(world)
    await world.pod("p", dict(NOWHERE))
    reservation = await desk.begin()
    if change == "allocated":
        await allocate(world, "c", device="d1")
    else:
        await world.patch(RESOURCE_CLAIMS, "c", {"metadata": {"labels": {"a": "b"}}})
        await world.delete(RESOURCE_CLAIMS, "c")
    if change == "made again":
        await make_claim(world)
    with pytest.raises(ClaimProblem) as caught:
        await desk.reserve(reservation)
    assert str(caught.value) == text


async def test_deallocated_devices_are_not_reserved(world: World):
    desk = Desk(world)
    await world.pod("p", dict(NOWHERE))
    reservation = Reservation((await desk.begin()).claim, None)
    with pytest.raises(ClaimProblem, match="claim default/c got deallocated elsewhere in the meantime"):
        await desk.reserve(reservation)


async def test_a_pod_that_is_not_bound_releases_only_its_reservation(world: World):
    desk = Desk(world)
    for name in ("p", "q"):
        await world.pod(name, dict(NOWHERE))
    await desk.begin()
    await allocate(world, "c", "p", "q")
    pod, claim = await world.client.get(PODS, "default", "p"), await world.client.get(CLAIMS, "default", "c")
    await desk.writes.unreserve(pod, claim)
    found = await desk.claim()
    assert [user["name"] for user in found["status"]["reservedFor"]] == ["q"]
    assert found["status"]["allocation"]
