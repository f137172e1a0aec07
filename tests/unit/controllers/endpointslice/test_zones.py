"""Hints by the zones' shares of CPUs while nodes are added, changed and deleted, in a whole sandbox."""

import json
from collections import Counter
from typing import Any

import pytest

from kcm_cli.api.core import SERVICES
from kcm_cli.api.discovery import ENDPOINT_SLICES
from kcm_cli.component.logs import V2
from kcm_cli.controllers.endpointslice.config import EndpointSliceConfig
from tests.kit.controlling import controllers
from tests.kit.world import NODES, World

ZONE = "topology.kubernetes.io/zone"


class Story:
    """A Service ``web`` that wants hints, and where its endpoints are meant for."""

    def __init__(self, world: World) -> None:
        self.world = world

    def running(self) -> Any:
        return controllers(self.world, EndpointSliceConfig(), names=["endpointslice-controller"])

    async def nodes(self) -> list[str]:
        items = json.loads(await self.world.client.list_page(NODES, ""))["items"]
        return sorted(node["metadata"]["name"] for node in items)

    async def zone(self, node: str, zone: str | None) -> None:
        await self.world.patch(NODES, node, {"metadata": {"labels": {ZONE: zone}}})

    async def service(self, mode: str = "Auto") -> None:
        metadata = {"name": "web", "annotations": {"service.kubernetes.io/topology-mode": mode}}
        spec = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
        await self.world.create(SERVICES, {"metadata": metadata, "spec": spec})

    async def pods(self, *counts: int) -> None:
        """So many pods on each node."""
        for node, count in zip(await self.nodes(), counts, strict=True):
            for number in range(count):
                await self.world.pod(f"{node}-{number}", {"labels": {"app": "web"}, "nodeName": node})

    async def hints(self) -> Counter[str]:
        """How many endpoints are meant for each zone; "-" for none."""
        items = json.loads(await self.world.client.list_page(ENDPOINT_SLICES, "default"))["items"]
        found: Counter[str] = Counter()
        for endpoint in (endpoint for item in items for endpoint in item.get("endpoints") or ()):
            zones = (endpoint.get("hints") or {}).get("forZones") or [{"name": "-"}]
            found.update(zone["name"] for zone in zones)
        return found

    async def messages(self) -> list[str]:
        return [text for reason, text in await self.world.events("web") if reason.startswith("Topology")]


@pytest.fixture
def story(world: World) -> Story:
    return Story(world)


async def three_zones(story: Story) -> None:
    for number, node in enumerate(await story.nodes()):
        await story.zone(node, f"z{number}")


async def test_endpoints_are_distributed_by_cpus(world: World, story: Story):
    await three_zones(story)
    async with story.running():
        await story.service()
        await story.pods(7, 1, 1)
        await world.wait(30)
        assert await story.hints() == {"z0": 3, "z1": 3, "z2": 3}
        assert "Topology Aware Hints has been enabled, addressType: IPv4" in await story.messages()


async def test_a_restart_removes_no_hints(world: World, story: Story):
    await three_zones(story)
    async with story.running():
        await story.service()
        await story.pods(3, 3, 3)
        await world.wait(30)
    page = await world.client.list_page(ENDPOINT_SLICES, "default")
    before = [item["metadata"]["resourceVersion"] for item in json.loads(page)["items"]]
    async with story.running():
        await world.wait(30)
    assert "-" not in await story.hints()
    page = await world.client.list_page(ENDPOINT_SLICES, "default")
    assert [item["metadata"]["resourceVersion"] for item in json.loads(page)["items"]] == before


async def test_removed_zones_get_no_hints_and_new_ones_their_share(world: World, story: Story):
    await three_zones(story)
    async with story.running():
        await story.service()
        await story.pods(3, 3, 3)
        await world.wait(30)
        nodes = await story.nodes()
        await story.zone(nodes[2], "z1")
        await world.pod("more", {"labels": {"app": "web"}, "nodeName": nodes[0]})
        await world.wait(30)
        assert set(await story.hints()) == {"z0", "z1"}
        await story.zone(nodes[2], "z2")
        await world.wait(30)
        assert set(await story.hints()) == {"z0", "z1", "z2"}


async def test_an_incomplete_node_removes_all_hints(world: World, story: Story):
    await three_zones(story)
    async with story.running():
        await story.service()
        await story.pods(3, 3, 3)
        await world.wait(30)
        assert "-" not in await story.hints()
        await world.create(NODES, {"metadata": {"name": "poor"}})
        body = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        merge = "application/merge-patch+json"
        await world.client.patch(NODES, "", "poor", body, content_type=merge, subresource="status")
        await world.wait(30)
        assert set(await story.hints()) == {"-"}
        await world.delete(NODES, "poor")
        await world.wait(30)
        assert "-" not in await story.hints()


async def test_hints_are_set_when_the_nodes_allow_them(world: World, story: Story):
    """Until then no change of a node makes a sync of the Service necessary."""
    await three_zones(story)
    async with story.running():
        await story.service()
        await story.pods(1, 1, 0)
        await world.wait(30)
        assert set(await story.hints()) == {"-"}
        before = await story.messages()
        assert "Insufficient number of endpoints (2 endpoints, 3 zones), addressType: IPv4" in before
        *_, last = await story.nodes()
        await story.zone(last, "z4")
        await world.wait(30)
        assert await story.messages() == before
        excluded = {"node-role.kubernetes.io/control-plane": "", ZONE: "z5"}
        await world.patch(NODES, last, {"metadata": {"labels": excluded}})
        await world.wait(30)
        assert await story.hints() == {"z0": 1, "z1": 1}


async def test_removing_the_annotation_of_a_service_removes_hints(world: World, story: Story):
    await three_zones(story)
    async with story.running():
        await story.service()
        await story.pods(3, 3, 3)
        await world.wait(30)
        off = {"metadata": {"annotations": {"service.kubernetes.io/topology-mode": "Disabled"}}}
        await world.patch(SERVICES, "web", off)
        await world.wait(30)
        assert set(await story.hints()) == {"-"}
        assert "Topology Aware Hints has been disabled, addressType: IPv4" in await story.messages()


@pytest.mark.parametrize("spec", [{"selector": None}, {"type": "ExternalName", "externalName": "x.example"}], ids=str)
async def test_a_service_without_slices_waits_for_no_hints(world: World, story: Story, caplog, spec):
    await three_zones(story)
    async with story.running():
        await story.service()
        await story.pods(1, 1, 0)
        await world.wait(30)
        assert "Insufficient number of endpoints (2 endpoints, 3 zones), addressType: IPv4" in await story.messages()
        await world.patch(SERVICES, "web", {"spec": spec})
        await world.wait(30)
        with caplog.at_level(V2):
            excluded = {"node-role.kubernetes.io/control-plane": "", ZONE: "z5"}
            await world.patch(NODES, (await story.nodes())[-1], {"metadata": {"labels": excluded}})
            await world.wait(30)
        assert "since hints are possible" not in caplog.text
