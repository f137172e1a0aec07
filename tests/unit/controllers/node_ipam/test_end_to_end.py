"""The controller in a whole sandbox, on virtual time: ranges are allocated to nodes, and released."""

import ipaddress
import random
from typing import Any

import pytest
from msgspec.structs import replace

from kcm_cli.component.generic_config import KubeCloudSharedConfig
from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.node_ipam.config import NodeIPAMConfig
from kcm_cli.engine.descriptor import StartError
from kcm_cli.rest.transport import Around, Request, Response, Transport
from tests.kit.controlling import Faulty, controllers
from tests.kit.faults import Held, Refusing, Rewriting, refusal
from tests.kit.world import NODES, World, resource

pytestmark = pytest.mark.cluster(alone=True)

DUAL = "10.0.0.0/22,fd00::/60"
EVENTS = resource("events")


def running(
    world: World,
    cluster: str = "10.0.0.0/22",
    services: str = "",
    transport: Transport | None = None,
    metrics: Registry | None = None,
) -> Any:
    shared = KubeCloudSharedConfig(allocate_node_cidrs=True, cluster_cidr=cluster)
    first, _, second = services.partition(",")
    config = NodeIPAMConfig(service_cidr=first, secondary_service_cidr=second)
    names = ["node-ipam-controller"]
    return controllers(world, shared, config, names=names, transport=transport, metrics=metrics)


async def add(world: World, name: str, *cidrs: str) -> None:
    spec = {"podCIDR": cidrs[0], "podCIDRs": [*cidrs]} if cidrs else {}
    await world.create(NODES, {"metadata": {"name": name}, "spec": spec})


async def given(world: World) -> dict[str, list[str]]:
    found = {item["metadata"]["name"]: item["spec"] for item in await world.items(NODES)}
    assert all(spec.get("podCIDR") == spec.get("podCIDRs", [None])[0] for spec in found.values())
    return {name: spec.get("podCIDRs", []) for name, spec in found.items()}


@pytest.mark.parametrize(
    ("cluster", "services", "expected"),
    [
        ("10.0.0.0/22", "", [["10.0.0.0/24"], ["10.0.1.0/24"]]),
        ("10.0.0.0/22", "10.0.0.0/24", [["10.0.1.0/24"], ["10.0.2.0/24"]]),
        ("10.0.0.0/22", "10.96.0.0/12", [["10.0.0.0/24"], ["10.0.1.0/24"]]),
        (DUAL, "", [["10.0.0.0/24", "fd00::/64"], ["10.0.1.0/24", "fd00:0:0:1::/64"]]),
        (DUAL, "10.0.0.0/23,fd00::/112", [["10.0.2.0/24", "fd00:0:0:1::/64"], ["10.0.3.0/24", "fd00:0:0:2::/64"]]),
    ],
)
async def test_nodes_get_ranges(world: World, cluster, services, expected):
    async with running(world, cluster, services):
        await add(world, "a")
        await world.wait()
        await add(world, "b")
        await world.wait()
        assert await given(world) == dict(zip("ab", expected, strict=True))


async def test_ranges_of_nodes_are_occupied_at_the_start(world: World):
    await add(world, "a", "10.0.0.0/24")
    await add(world, "b")
    async with running(world):
        await world.wait()
        assert await given(world) == {"a": ["10.0.0.0/24"], "b": ["10.0.1.0/24"]}


async def test_the_range_of_a_deleted_node_is_reused(world: World):
    async with running(world):
        for name in "abcd":
            await add(world, name)
        await add(world, "waits")
        await world.wait(5)
        had = await given(world)
        (left,) = (name for name, cidrs in had.items() if not cidrs)
        emitted = ("CIDRNotAvailable", f"Node {left} status is now: CIDRNotAvailable")
        assert await world.events(left) == [emitted]
        (event,) = await world.items(EVENTS)
        assert (event["source"], event["type"]) == ({"component": "cidrAllocator"}, "Normal")
        gone = next(name for name in had if name != left)
        await world.delete(NODES, gone)
        await world.wait(60)
        assert (await given(world))[left] == had[gone]


@pytest.mark.parametrize("again", [False, True], ids=["deleted", "made again"])
async def test_the_range_of_a_node_that_is_deleted_during_the_start_is_reused(world: World, again):
    """The list has it, and the cache never had: no event says that it is gone."""
    await add(world, "stays", "10.0.0.0/24")
    await add(world, "gone", "10.0.1.0/24")
    inner, listed = world.server.transport(), []

    class Gone(Around):
        async def send(self, request: Request) -> Response:
            answer = await super().send(request)
            if not listed and request.method == "GET" and request.path == "/api/v1/nodes":
                listed.append(request)
                await world.delete(NODES, "gone")
                if again:
                    await add(world, "gone")
                await world.wait(1)
            return answer

    async with running(world, "10.0.0.0/23", transport=Gone(inner)):
        await world.wait(5)
        if not again:
            await add(world, "new")
        await world.wait(5)
        found = await given(world)
    assert found == {"stays": ["10.0.0.0/24"], "gone" if again else "new": ["10.0.1.0/24"]}


@pytest.mark.parametrize(
    ("ranges", "services", "left"),
    [
        pytest.param({"gone": "10.0.0.0/25", "stays": "10.0.0.128/25"}, "", 3, id="smaller than now"),
        pytest.param({"gone": "10.0.0.0/23", "stays": "10.0.1.0/24"}, "", 3, id="larger than now"),
        pytest.param({"gone": "10.0.1.0/24", "stays": "10.0.0.0/23"}, "", 2, id="within a larger one"),
        pytest.param({"gone": "10.0.0.0/24", "stays": "10.0.0.0/24"}, "", 3, id="twice"),
        pytest.param({"gone": "10.0.0.0/23"}, "10.0.0.0/24", 3, id="of services, too"),
    ],
)
async def test_a_range_that_another_node_has_a_part_of_is_not_reused(world: World, ranges, services, left):
    """As after a change of --node-cidr-mask-size."""
    for name, cidr in ranges.items():
        await add(world, name, cidr)
    async with running(world, services=services):
        await world.wait()
        await world.delete(NODES, "gone")
        await world.wait()
        for number in range(4):
            await add(world, f"new-{number}")
        await world.wait(5)
        found = await given(world)
    new = [ipaddress.ip_network(cidr) for name, cidrs in found.items() if name.startswith("new") for cidr in cidrs]
    others = [ipaddress.ip_network(cidr) for cidr in (*found.get("stays", ()), *filter(None, [services]))]
    assert len(new) == left
    assert not any(one.overlaps(other) for one in new for other in others)


async def test_a_recreated_node_gets_a_range(world: World):
    async with running(world, "10.0.0.0/24"):
        for _ in range(3):
            await add(world, "a")
            await world.wait(5)
            assert await given(world) == {"a": ["10.0.0.0/24"]}
            await world.delete(NODES, "a")


async def test_a_dual_stack_node_gets_both_ranges_or_none(world: World):
    registry = Registry()
    async with running(world, "10.0.0.0/22,fd00::/64", metrics=registry):
        await add(world, "a")
        await world.wait()
        await add(world, "b")
        await world.wait(20)
        assert await given(world) == {"a": ["10.0.0.0/24", "fd00::/64"], "b": []}
        assert (
            'node_ipam_controller_cidrset_usage_cidrs{clusterCIDR="10.0.0.0/22"} 0.25\n' in registry.expose().decode()
        )
        await world.delete(NODES, "a")
        await world.wait(60)
        assert (await given(world))["b"][1] == "fd00::/64"


async def test_a_range_with_a_lost_answer_is_not_reused(world: World):
    blind = [True]

    def lost(request: Request) -> bool:
        return blind[0] and request.method == "PATCH" and request.path == "/api/v1/nodes/a"

    async with running(world, transport=Refusing(world.server.transport(), lost)):
        await add(world, "a")
        await world.wait()
        await add(world, "b")
        await world.wait()
        assert await given(world) == {"a": [], "b": ["10.0.1.0/24"]}
        assert set(await world.events("a")) == {("CIDRAssignmentFailed", "Node a status is now: CIDRAssignmentFailed")}
        blind[0] = False
        await world.wait(30)
        assert (await given(world))["a"] == ["10.0.0.0/24"]


async def test_another_client_assigned_another_range(world: World):
    blind = [True]

    def answer(request: Request) -> Any:
        return refusal(403, "Forbidden") if blind[0] and request.method == "PATCH" else None

    async with running(world, "10.0.0.0/23", transport=Rewriting(world.server.transport(), answer=answer)):
        await add(world, "a")
        await world.wait()
        cidrs = {"podCIDR": "10.0.1.0/24", "podCIDRs": ["10.0.1.0/24"]}
        await world.patch(NODES, "a", {"spec": cidrs})
        blind[0] = False
        await add(world, "b")
        await world.wait(5)
        assert await given(world) == {"a": ["10.0.1.0/24"], "b": ["10.0.0.0/24"]}


@pytest.mark.parametrize("deleted", [False, True])
async def test_a_range_that_comes_with_a_node_is_not_allocated_to_another_one(world: World, deleted):
    """As nodes that are restored, or made by a cloud's manager, are seen at once with new ones; one may be on its way
    out."""
    held = Held(world.server.transport(), world.clock, "/api/v1/nodes")
    async with running(world, transport=held):
        await world.wait()
        held.hold()
        if not deleted:
            await add(world, "new")
        spec = {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]}
        await world.create(NODES, {"metadata": {"name": "a", "finalizers": ["example.com/drain"]}, "spec": spec})
        if deleted:
            await world.delete(NODES, "a")
            await add(world, "new")
        held.release()
        await world.wait(5)
        assert (await given(world))["new"] == ["10.0.1.0/24"]


async def test_an_invalid_range_does_not_affect_other_nodes(world: World):
    """An API server refuses such a one; what it stored before it did is there all the same."""

    def spoilt(request: Request, response: Response) -> Response:
        return replace(response, body=response.body.replace(b'"10.0.0.0/24"', b'"garbage"'))

    await add(world, "a", "10.0.0.0/24")
    await add(world, "b")
    async with running(world, transport=Rewriting(world.server.transport(), spoilt)):
        await world.wait(5)
        assert len((await given(world))["b"]) == 1


async def test_a_node_that_cannot_be_decoded_keeps_its_range(world: World):
    def spoilt(request: Request, response: Response) -> Response:
        body = response.body.replace(b'"10.0.0.0/24"]', b'"10.0.0.0/24"],"taints":7')
        return replace(response, body=body.replace(b'["10.0.1.0/24"]', b"7"))

    await add(world, "a", "10.0.0.0/24")
    await add(world, "odd", "10.0.1.0/24")
    await add(world, "b")
    async with running(world, transport=Rewriting(world.server.transport(), spoilt)):
        await world.wait(5)
        assert (await given(world))["b"] not in ([], ["10.0.0.0/24"])


@pytest.mark.parametrize("cidrs", [["172.16.0.0/24"], ["10.0.0.0/24", "fd00::/64"]])
async def test_a_node_with_a_range_of_another_cluster_ends_the_manager(world: World, cidrs):
    await add(world, "a", *cidrs)
    with pytest.raises(StartError, match="a"):
        async with running(world):
            await world.wait(5)


async def test_without_a_list_of_nodes_the_start_times_out(world: World):
    down = Refusing(world.server.transport(), lambda request: request.path == "/api/v1/nodes")
    with pytest.raises(StartError, match="failed to list all nodes in 600s"):
        async with running(world, transport=down):
            await world.wait(300)
            refused = down.refused
            await world.wait(330)
            assert down.refused > refused


async def test_it_does_not_run_by_default(world: World):
    off = KubeCloudSharedConfig(cluster_cidr="10.0.0.0/16")
    async with controllers(world, off, NodeIPAMConfig(), names=["node-ipam-controller"]):
        await add(world, "a")
        await world.wait(5)
        assert await given(world) == {"a": []}


async def test_invalid_options_are_errors_at_the_start(world: World):
    with pytest.raises(StartError, match="--cluster-cidr must be given with --allocate-node-cidrs"):
        async with running(world, ""):
            await world.wait(1)


@pytest.mark.parametrize("seed", range(3))
async def test_lost_requests_and_answers(world: World, seed):
    faulty = Faulty(world.server.transport(), random.Random(seed), 0.5)
    async with running(world, "10.0.0.0/20", transport=faulty):
        for number in range(12):
            await add(world, f"n{number}")
            if number % 3 == 2:
                await world.delete(NODES, f"n{number}")
        await world.wait(120)
        cidrs = await given(world)
        assert faulty.faults
        assert len(cidrs) == len({cidr for [cidr] in cidrs.values()}) == 8


@pytest.mark.cluster(alone=False, nodes=2, ranged=False)
async def test_simulated_nodes_wait_for_their_ranges(world: World):
    await world.wait(20)
    assert await given(world) == {"node-1": [], "node-2": []}
    assert not any(item["status"].get("conditions") for item in await world.items(NODES))
    async with running(world, "fd00::/60,10.32.0.0/22"):
        await world.wait(5)
        ranges = await given(world)
        assert sorted(cidrs[1] for cidrs in ranges.values()) == ["10.32.0.0/24", "10.32.1.0/24"]
        await world.pod("p")
        await world.wait(5)
        own = ranges[await world.node_of("p")][1]
        assert ipaddress.ip_address((await world.status("p"))["podIP"]) in ipaddress.ip_network(own)
