"""The three controllers of endpoints in a whole sandbox, on virtual time; also where writes fail."""

import random
from dataclasses import replace
from typing import Any

import pytest

from kcm_cli.api.core import SERVICES
from kcm_cli.api.discovery import ENDPOINT_SLICES
from kcm_cli.api.endpoints import ENDPOINTS
from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.endpoints import controller as endpoints
from kcm_cli.controllers.endpoints.config import EndpointsConfig
from kcm_cli.controllers.endpointslice import controller as slices
from kcm_cli.controllers.endpointslice.config import EndpointSliceConfig
from kcm_cli.controllers.endpointslice_mirroring.config import EndpointSliceMirroringConfig
from kcm_cli.engine.context import ControllerContext
from kcm_cli.rest.transport import Request
from tests.kit.controlling import Faulty, controllers
from tests.kit.faults import Refusing
from tests.kit.world import PODS, World

NAMES = ("endpoints-controller", "endpointslice-controller", "endpointslice-mirroring-controller")


class Story:
    """A Service ``web`` and the questions of the tests."""

    def __init__(self, world: World, *, limit: int = 3, batch_s: float = 0.0) -> None:
        self.world = world
        self.configs = (
            EndpointsConfig(updates_batch_period_s=batch_s),
            EndpointSliceConfig(max_endpoints_per_slice=limit, updates_batch_period_s=batch_s),
            EndpointSliceMirroringConfig(),
        )

    def running(self, **options: Any) -> Any:
        return controllers(self.world, *self.configs, names=NAMES, **options)

    async def service(self, name: str = "web", **spec: Any) -> None:
        body = {"selector": {"app": "web"}, "ports": [{"port": 80}]} | spec
        await self.world.create(SERVICES, {"metadata": {"name": name}, "spec": body})

    async def pods(self, *numbers: int) -> None:
        for number in numbers:
            await self.world.pod(f"p{number}", {"labels": {"app": "web"}})

    async def placed(self) -> list[list[str]]:
        """Ready pods by slice."""
        return [
            sorted(
                endpoint["targetRef"]["name"]
                for endpoint in slice_.get("endpoints") or ()
                if endpoint["conditions"]["ready"]
            )
            for slice_ in await self.world.items(ENDPOINT_SLICES)
        ]

    async def ready(self) -> list[str]:
        """Ready pods in the Endpoints."""
        found = await self.world.items(ENDPOINTS)
        subsets = [subset for each in found for subset in each.get("subsets", [])]
        return sorted(address["targetRef"]["name"] for subset in subsets for address in subset.get("addresses", []))

    async def versions(self) -> dict[str, str]:
        found = [*await self.world.items(ENDPOINT_SLICES), *await self.world.items(ENDPOINTS)]
        return {each["metadata"]["uid"]: each["metadata"]["resourceVersion"] for each in found}


@pytest.fixture
def story(world: World) -> Story:
    return Story(world)


def names(*numbers: int) -> list[str]:
    return sorted(f"p{number}" for number in numbers)


async def test_lifecycle(world: World, story: Story):
    async with story.running():
        await story.service()
        await world.wait(3)
        assert await story.placed() == [[]]
        await story.pods(*range(7))
        await world.wait(30)
        placed = await story.placed()
        assert sorted(sum(placed, [])) == names(*range(7))
        assert max(map(len, placed)) <= 3
        assert await story.ready() == names(*range(7))
        await world.delete(PODS, "p3")
        await world.wait(60)
        assert sorted(sum(await story.placed(), [])) == names(0, 1, 2, 4, 5, 6)
        await world.delete(SERVICES, "web")
        await world.wait(5)
        assert await story.world.items(ENDPOINTS) == []


async def test_services_of_the_type_external_name_have_no_endpoints(world: World, story: Story):
    """Also with a selector, which the API server accepts."""
    await story.pods(0)
    async with story.running():
        await story.service(type="ExternalName", externalName="example.com")
        await world.wait(10)
        assert await story.placed() == []
        assert await world.items(ENDPOINTS) == []


@pytest.mark.parametrize("left", [{"type": "ExternalName", "externalName": "example.com"}, {"selector": None}])
async def test_nothing_is_kept_of_pods_that_a_service_does_not_select_any_more(world: World, monkeypatch, left):
    made: list[Any] = []
    for module in (endpoints, slices):
        make = module.CONTROLLER.make

        def noted(context: ControllerContext, make: Any = make) -> Any:
            made.append(make(context))
            return made[-1]

        monkeypatch.setattr(module, "CONTROLLER", replace(module.CONTROLLER, make=noted))
    story = Story(world)
    async with story.running():
        await story.service(clusterIP="None")
        await story.pods(0, 1)
        await world.wait(10)
        assert [list(each._memos) for each in made] == [["default/web"], ["default/web"]]
        await world.patch(SERVICES, "web", {"spec": left})
        await world.wait(5)
        assert [list(each._memos) for each in made] == [[], []]


async def test_a_restart_writes_nothing(world: World, story: Story):
    async with story.running():
        await story.service()
        await story.service("db", clusterIP="None")
        await story.pods(*range(5))
        await world.wait(30)
    before = await story.versions()
    assert before
    async with story.running():
        await world.wait(30)
    assert await story.versions() == before


async def test_slices_of_services_deleted_during_downtime_are_deleted(world: World, story: Story):
    leader = {"control-plane.alpha.kubernetes.io/leader": "{}"}
    await world.create(ENDPOINTS, {"metadata": {"name": "lost"}})
    await world.create(ENDPOINTS, {"metadata": {"name": "lock", "annotations": leader}})
    async with story.running():
        await world.wait(5)
    assert [each["metadata"]["name"] for each in await story.world.items(ENDPOINTS)] == ["lock"]


async def test_a_slice_of_a_former_process_that_is_deleted_is_created_again(world: World, story: Story):
    async with story.running():
        await story.service()
        await story.pods(0, 1)
        await world.wait(30)
    async with story.running():
        await world.wait(30)
        (slice_,) = await world.items(ENDPOINT_SLICES)
        await world.delete(ENDPOINT_SLICES, slice_["metadata"]["name"])
        await world.wait(5)
        assert await story.placed() == [names(0, 1)]


async def test_changed_slices_are_repaired_and_unmanaged_ones_are_kept(world: World, story: Story):
    async with story.running():
        await story.service()
        await story.pods(0, 1)
        await world.wait(30)
        (slice_,) = await story.world.items(ENDPOINT_SLICES)
        await world.patch(ENDPOINT_SLICES, slice_["metadata"]["name"], {"endpoints": []})
        await world.wait(5)
        assert await story.placed() == [names(0, 1)]
        await world.delete(ENDPOINT_SLICES, slice_["metadata"]["name"])
        await world.wait(5)
        assert await story.placed() == [names(0, 1)]


async def test_a_relabelled_slice_is_replaced(world: World, story: Story):
    async with story.running():
        await story.service()
        await story.pods(0, 1)
        await world.wait(30)
        (slice_,) = await story.world.items(ENDPOINT_SLICES)
        name = slice_["metadata"]["name"]
        await world.patch(ENDPOINT_SLICES, name, {"metadata": {"labels": {"kubernetes.io/service-name": None}}})
        await world.wait(10)
        others = [each for each in await story.world.items(ENDPOINT_SLICES) if each["metadata"]["name"] != name]
        (replaced,) = others
        assert sorted(each["targetRef"]["name"] for each in replaced["endpoints"]) == names(0, 1)


async def test_changes_within_the_batch_period_are_one_write(world: World):
    story = Story(world, limit=100, batch_s=60.0)
    async with story.running():
        await story.service()
        await world.wait(5)
        await story.pods(*range(5))
        await world.wait(40)
        assert await story.placed() == [[]]
        await world.wait(60)
        assert await story.placed() == [names(*range(5))]
        (slice_,) = await story.world.items(ENDPOINT_SLICES)
        assert slice_["metadata"]["generation"] == 2


async def test_mirrored_endpoints_follow_their_service(world: World, story: Story):
    subsets = [{"addresses": [{"ip": "10.9.9.9"}, {"ip": "fd00::1"}], "ports": [{"port": 80}]}]
    async with story.running():
        await world.wait(5)  # what is there at the start, and has no Service, is a leftover
        await world.create(ENDPOINTS, {"metadata": {"name": "ext"}, "subsets": subsets})
        await world.wait(5)
        assert await story.world.items(ENDPOINT_SLICES) == []
        await story.service("ext", selector=None)
        await world.wait(5)
        assert {slice_["addressType"] for slice_ in await story.world.items(ENDPOINT_SLICES)} == {"IPv4", "IPv6"}
        await world.patch(ENDPOINTS, "ext", {"subsets": None})
        await world.wait(5)
        assert await story.world.items(ENDPOINT_SLICES) == []


@pytest.mark.parametrize("seed", range(3))
async def test_lost_requests_and_answers(world: World, story: Story, seed):
    """Half of the writes fail, sent or not: in the end everything is in its place, once."""
    transport = Faulty(world.server.transport(), random.Random(seed), 0.5)
    async with story.running(transport=transport):
        await story.service()
        await story.pods(*range(8))
        await world.wait(300)
        await world.delete(PODS, "p1")
        await story.pods(8)
        await world.wait(1800)
        assert transport.faults
        placed = await story.placed()
        assert sorted(sum(placed, [])) == names(0, 2, 3, 4, 5, 6, 7, 8)
        assert max(map(len, placed)) <= 3
        assert await story.ready() == names(0, 2, 3, 4, 5, 6, 7, 8)


async def test_a_failed_write_of_a_slice_is_retried(world: World, story: Story):
    creations = []

    def first_creation(request: Request) -> bool:
        if request.method != "POST" or not request.path.endswith("/endpointslices"):
            return False
        creations.append(request)
        return len(creations) == 1

    async with story.running(transport=Refusing(world.server.transport(), first_creation)):
        await world.wait(5)
        await story.service()
        await world.wait(5)
        assert len(creations) == 2
        assert await story.placed() == [[]]


async def test_services_are_counted_by_their_traffic_distribution(world: World):
    story, registry = Story(world), Registry()

    def counted() -> set[str]:
        lines = registry.expose().decode().splitlines()
        return {line.partition("{")[2] for line in lines if "count_by_traffic_distribution{" in line}

    def series(**counts: int) -> set[str]:
        return {f'traffic_distribution="{name}"}} {count}' for name, count in counts.items()}

    async with story.running(metrics=registry):
        for name, distribution in (("a", "PreferSameZone"), ("b", "PreferSameZone"), ("c", "PreferSameNode")):
            await story.service(name, trafficDistribution=distribution)
        await story.service("d")
        await world.wait(2)
        assert counted() == series(PreferSameZone=2, PreferSameNode=1)
        await world.patch(SERVICES, "c", {"spec": {"trafficDistribution": "PreferSameZone"}})
        await world.patch(SERVICES, "b", {"spec": {"trafficDistribution": None}})
        await world.wait(2)
        assert counted() == series(PreferSameZone=2, PreferSameNode=0)
        await world.delete(SERVICES, "a")
        await world.delete(SERVICES, "c")
        await world.wait(2)
        assert counted() == series(PreferSameZone=0, PreferSameNode=0)


@pytest.mark.cluster(service_ranges=("10.0.0.0/16", "fd00::/108"))
async def test_slices_of_a_type_that_a_service_has_no_more_are_not_counted(world: World):
    story, registry = Story(world), Registry()

    def counted() -> float:
        shown = registry.expose().decode().splitlines()
        (line,) = (line for line in shown if line.startswith("endpoint_slice_controller_num_endpoint_slices "))
        return float(line.split()[1])

    async with story.running(metrics=registry):
        await story.service(ipFamilyPolicy="RequireDualStack")
        await world.wait(5)
        assert (len(await story.placed()), counted()) == (2, 2)
        await world.patch(SERVICES, "web", {"spec": {"ipFamilyPolicy": "SingleStack"}})
        await world.wait(5)
        assert (len(await story.placed()), counted()) == (1, 1)


async def test_syncs_without_changes_are_counted(world: World):
    story, registry = Story(world), Registry()

    def syncs() -> float:
        shown = registry.expose().decode().splitlines()
        (line,) = (line for line in shown if line.startswith("endpoint_slice_controller_syncs{"))
        return float(line.removeprefix('endpoint_slice_controller_syncs{result="success"} '))

    async with story.running(metrics=registry):
        await world.wait(5)
        before = syncs()
        await story.service(selector=None)
        await world.wait(5)
        assert syncs() == before + 1
        await world.delete(SERVICES, "web")
        await world.wait(5)
        assert syncs() == before + 2
