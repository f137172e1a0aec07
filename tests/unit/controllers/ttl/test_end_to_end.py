"""The controller in a whole sandbox, on virtual time."""

import pytest

from kcm_cli.rest.transport import Request
from tests.kit.controlling import controllers
from tests.kit.faults import Held, Refusing
from tests.kit.world import NODES, World

pytestmark = pytest.mark.cluster(nodes=2)

TTL = "node.alpha.kubernetes.io/ttl"


async def shown(world: World) -> set[str | None]:
    nodes = await world.items(NODES)
    return {node["metadata"].get("annotations", {}).get(TTL) for node in nodes}


async def beat(world: World, value: str) -> None:
    """Change all nodes: the annotation follows a change of its node."""
    for node in await world.items(NODES):
        await world.patch(NODES, node["metadata"]["name"], {"metadata": {"labels": {"beat": value}}})
    await world.wait(20)


async def test_nodes_are_annotated_as_the_cluster_grows_and_shrinks(world: World):
    async with controllers(world, names=["ttl-controller"]):
        await world.wait(5)
        assert await shown(world) == {"0"}
        for number in range(100):
            await world.create(NODES, {"metadata": {"name": f"n{number}"}})
        await world.wait(2)
        assert "15" in await shown(world)
        await beat(world, "1")
        assert await shown(world) == {"15"}
        for number in range(60):
            await world.delete(NODES, f"n{number}")
        await beat(world, "2")
        assert await shown(world) == {"0"}


async def test_a_wrong_annotation_is_corrected_and_failures_are_retried(world: World):
    broken = [True]
    transport = Refusing(world.server.transport(), lambda r: broken[0] and r.method == "PATCH")
    async with controllers(world, names=["ttl-controller"], transport=transport):
        await world.wait(5)
        assert transport.refused
        assert await shown(world) == {None}
        broken[0] = False
        await world.wait(20)
        assert await shown(world) == {"0"}
        nodes = await world.items(NODES)
        await world.patch(NODES, nodes[0]["metadata"]["name"], {"metadata": {"annotations": {TTL: "soon"}}})
        await world.wait(2)
        assert await shown(world) == {"0"}


@pytest.mark.cluster(nodes=0)
async def test_a_node_is_not_annotated_again_with_a_stale_cache(world: World):
    held = Held(world.server.transport(), world.clock, "/api/v1/nodes")
    patches: list[str] = []

    async def before(request: Request) -> None:
        if request.method != "PATCH":
            return
        patches.append(request.path)
        if len(patches) == 1:
            await world.patch(NODES, "n", {"metadata": {"labels": {"beat": "1"}}})
            await world.wait(1)  # seen, and the key is queued again
            held.hold()

    transport = Refusing(held, lambda request: False, before)
    async with controllers(world, names=["ttl-controller"], transport=transport):
        await world.wait(1)
        await world.create(NODES, {"metadata": {"name": "n"}})
        await world.wait(5)
        held.release()
        await world.wait(5)
        assert await shown(world) == {"0"}
        assert patches == ["/api/v1/nodes/n"]
