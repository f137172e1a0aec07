"""The controller in a whole sandbox, on virtual time: ranges are ready, and deleted when no Service needs them."""

import random
from collections.abc import Iterable
from typing import Any

import pytest

from kcm_cli.api.networking import ServiceCIDR
from kcm_cli.controllers.service_cidr import plan
from kcm_cli.machinery.addresses import Address
from kcm_cli.rest.errors import Invalid
from kcm_cli.rest.transport import Request, Response, Transport
from tests.kit.controlling import Faulty, controllers
from tests.kit.faults import Held, Noting, Refusing, Rewriting
from tests.kit.world import World, resource

pytestmark = pytest.mark.cluster(alone=True)

RANGES = resource("servicecidrs", "networking.k8s.io", namespaced=False)
ADDRESSES = resource("ipaddresses", "networking.k8s.io", namespaced=False)
SERVICES = resource("services")
FINALIZER = "networking.k8s.io/service-cidr-finalizer"


def running(world: World, transport: Transport | None = None) -> Any:
    return controllers(world, names=["service-cidr-controller"], transport=transport)


async def add(world: World, name: str = "more", *cidrs: str) -> None:
    await world.create(RANGES, {"metadata": {"name": name}, "spec": {"cidrs": [*(cidrs or ("192.168.0.0/24",))]}})


async def service(world: World, ip: str, name: str = "web") -> None:
    await world.create(SERVICES, {"metadata": {"name": name}, "spec": {"clusterIP": ip, "ports": [{"port": 80}]}})


async def address(world: World, text: str) -> None:
    """As an API server allocates it."""
    labels = {"ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"}
    parent = {"resource": "services", "namespace": "default", "name": "web"}
    await world.create(ADDRESSES, {"metadata": {"name": text, "labels": labels}, "spec": {"parentRef": parent}})


async def widen(world: World) -> None:
    """Give the default range a network of IPv6, as when a cluster becomes dual-stack."""
    blocks = (await world.get(RANGES, "kubernetes"))["spec"]["cidrs"]
    await world.patch(RANGES, "kubernetes", {"spec": {"cidrs": [*blocks, "fd00::/108"]}})


async def condition(world: World, name: str = "more") -> tuple[str, str]:
    (found,) = (await world.get(RANGES, name))["status"]["conditions"]
    return found["status"], found["reason"]


async def test_ranges_become_ready_and_are_held(world: World):
    await add(world)
    async with running(world):
        await world.wait()
        for name in ("more", "kubernetes"):
            found = await world.get(RANGES, name)
            assert found["metadata"]["finalizers"] == [FINALIZER]
            (ready,) = found["status"]["conditions"]
            assert ready.pop("lastTransitionTime")
            message = "Kubernetes Service CIDR is ready"
            assert ready == {"type": "Ready", "status": "True", "reason": "", "message": message}


async def test_a_range_without_addresses_is_deleted_after_ten_seconds(world: World):
    async with running(world):
        await add(world)
        await world.wait()
        await world.delete(RANGES, "more")
        await world.wait(8)
        assert not await world.is_deleted("more", RANGES)
        await world.wait(3)
        assert await world.is_deleted("more", RANGES)


async def test_a_terminating_range_allocates_nothing(world: World):
    async with running(world):
        await add(world)
        await world.wait()
        await service(world, "192.168.0.7")
        await world.delete(RANGES, "more")
        with pytest.raises(Invalid, match="the provided network does not match the current range"):
            await service(world, "192.168.0.8", "second")


@pytest.mark.parametrize("way", ["the service goes", "another range comes"])
async def test_a_range_is_kept_while_addresses_need_it(world: World, way):
    async with running(world):
        await add(world)
        await world.wait()
        await service(world, "192.168.0.7")
        await world.delete(RANGES, "more")
        await world.wait(30)
        assert await condition(world) == ("False", "Terminating")
        if way == "the service goes":
            await world.delete(SERVICES, "web")
        else:
            await add(world, "wider", "192.168.0.0/16")
        await world.wait()
        assert await world.is_deleted("more", RANGES)


async def test_a_deleted_range_costs_looking_at_the_addresses_near_it_only(world: World, monkeypatch):
    looked: list[str] = []
    containing = plan.containing

    def look(address: Address, ranges: Iterable[ServiceCIDR]) -> list[str]:
        looked.append(str(address))
        return containing(address, ranges)

    async with running(world):
        await add(world)
        await world.wait()
        await add(world, "another", "192.168.9.0/24")
        await world.wait()
        for number in range(1, 20):
            await service(world, f"192.168.9.{number}", f"other{number}")
        await service(world, "192.168.0.7")
        await world.wait()
        monkeypatch.setattr(plan, "containing", look)
        await world.delete(RANGES, "more")
        await world.wait(30)
        assert await condition(world) == ("False", "Terminating")
        await world.delete(SERVICES, "web")
        await world.wait()
        assert await world.is_deleted("more", RANGES)
        assert set(looked) == {"192.168.0.7"}


async def test_an_address_created_in_the_grace_period_keeps_the_range(world: World):
    async with running(world):
        await add(world)
        await world.wait()
        await world.delete(RANGES, "more")
        await world.wait(5)
        await address(world, "192.168.0.9")
        await world.wait(30)
        assert await condition(world) == ("False", "Terminating")


async def test_a_range_is_kept_for_an_address_that_the_cache_does_not_show(world: World):
    held = Held(world.server.transport(), world.clock, "/apis/networking.k8s.io/v1/ipaddresses")
    async with running(world, held):
        await add(world)
        await world.wait()
        held.hold()
        await service(world, "192.168.0.7")
        await world.delete(RANGES, "more")
        await world.wait(30)
        assert not await world.is_deleted("more", RANGES)
        assert await condition(world) == ("False", "Terminating")
        await world.delete(SERVICES, "web")
        await world.wait(70)
        assert await world.is_deleted("more", RANGES)
        held.release()


async def test_a_range_is_released_when_another_one_gets_its_addresses(world: World):
    async with running(world):
        await add(world, "more", "fd00::/112")
        await world.wait()
        await address(world, "fd00::7")
        await world.delete(RANGES, "more")
        await world.wait(30)
        assert await condition(world) == ("False", "Terminating")
        await widen(world)
        await world.wait()
        assert await world.is_deleted("more", RANGES)


async def test_a_range_that_gets_addresses_while_it_is_deleted_is_kept(world: World):
    """The cache shows its former networks."""
    held = Held(world.server.transport(), world.clock, "/apis/networking.k8s.io/v1/servicecidrs")
    async with running(world, held):
        await world.wait()
        await add(world, "wider", "10.0.0.0/8")
        await world.wait()
        await address(world, "fd00::7")
        await world.delete(RANGES, "kubernetes")
        await world.wait(2)
        held.hold()
        await widen(world)
        await world.wait(30)
        assert not await world.is_deleted("kubernetes", RANGES)
        held.release()
        await world.wait(5)
        assert await condition(world, "kubernetes") == ("False", "Terminating")


async def test_of_two_ranges_with_the_same_addresses_one_is_kept(world: World):
    async with running(world):
        await add(world)
        await add(world, "same")
        await world.wait()
        await service(world, "192.168.0.7")
        await world.delete(RANGES, "more")
        await world.delete(RANGES, "same")
        await world.wait(60)
        left = [item["metadata"]["name"] for item in await world.items(RANGES)]
        assert len(left) == 2
        (stays,) = {"more", "same"} & {*left}
        assert await condition(world, stays) == ("False", "Terminating")


async def test_other_field_managers_keep_their_fields(world: World):
    metadata = {"name": "more", "finalizers": ["a.b/c"], "labels": {"x": "y"}}
    await world.create(RANGES, {"metadata": metadata, "spec": {"cidrs": ["192.168.0.0/24"]}})
    async with running(world):
        await world.wait()
        found = (await world.get(RANGES, "more"))["metadata"]
        assert ({*found["finalizers"]}, found["labels"]) == ({FINALIZER, "a.b/c"}, {"x": "y"})
        await world.delete(RANGES, "more")
        await world.wait(20)
        assert (await world.get(RANGES, "more"))["metadata"]["finalizers"] == ["a.b/c"]


async def test_a_failed_write_of_the_status_is_reported(world: World):
    down = [True]

    def refuses(request: Request) -> bool:
        return down[0] and request.path.endswith("/more/status")

    async with running(world, Refusing(world.server.transport(), refuses)):
        await add(world)
        await world.wait(5)
        event = ("KubernetesServiceCIDRError", "The ServiceCIDR Status can not be set to Ready=True")
        assert set(await world.events("more")) == {event}
        down[0] = False
        await world.wait(30)
        assert await condition(world) == ("True", "")


async def test_a_status_is_written_once_with_a_stale_cache(world: World):
    def sets_status(request: Request) -> bool:
        return request.path.endswith("/more/status")

    noting = Noting(world.server.transport())
    held = Held(noting, world.clock, "/apis/networking.k8s.io/v1/servicecidrs", sets_status)
    async with running(world, held):
        await world.wait()
        await add(world)
        await world.wait(5)
        await service(world, "192.168.0.9")
        await world.wait(5)
        held.release()
        await world.wait(5)
    sent = [path.rpartition("servicecidrs/")[2] for path in noting.paths("PATCH")]
    assert [one for one in sent if one.startswith("more")] == ["more", "more/status"]


async def test_a_range_is_deleted_although_another_cannot_be_decoded(world: World):
    """An undecodable range counts as one without addresses, so no range is deleted too early."""

    def edited(request: Request, response: Response) -> Response:
        return Response(response.status, response.headers, response.body.replace(b'["192.168.9.0/24"]', b"5"))

    async with running(world, Rewriting(world.server.transport(), edited)):
        await add(world, "odd", "192.168.9.0/24")
        await add(world)
        await world.wait()
        await world.delete(RANGES, "more")
        await world.wait(12)
        assert await world.is_deleted("more", RANGES)


async def test_the_default_range_is_recreated(world: World):
    async with running(world):
        await add(world, "wider", "10.0.0.0/8")
        await world.wait()
        before = await world.get(RANGES, "kubernetes")
        await world.delete(RANGES, "kubernetes")
        await world.wait(5)
        assert (await world.get(RANGES, "kubernetes"))["metadata"]["deletionTimestamp"]
        await world.wait(10)
        after = await world.get(RANGES, "kubernetes")
        assert after["metadata"]["uid"] != before["metadata"]["uid"]
        assert (after["spec"], await condition(world, "kubernetes")) == (before["spec"], ("True", ""))
        assert after["metadata"]["finalizers"] == [FINALIZER]


@pytest.mark.parametrize("seed", range(3))
async def test_lost_requests_and_answers(world: World, seed):
    faulty = Faulty(world.server.transport(), random.Random(seed), 0.5)
    async with running(world, faulty):
        for number in range(5):
            await add(world, f"r{number}", f"192.168.{number}.0/24")
        await world.wait(60)
        for number in range(5):
            assert await condition(world, f"r{number}") == ("True", "")
            await world.delete(RANGES, f"r{number}")
        await world.wait(120)
        assert faulty.faults
        assert [item["metadata"]["name"] for item in await world.items(RANGES)] == ["kubernetes"]
