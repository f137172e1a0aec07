"""Changes of nodes through the API alone."""

import pytest

from kcm_cli.sandbox.nodes import commands, shape
from tests.kit.world import NODES, World

pytestmark = pytest.mark.cluster(nodes=0)


@pytest.mark.parametrize("change", [commands.remove, commands.fail, commands.recover], ids=lambda f: f.__name__)
async def test_real_nodes_are_not_changed(world: World, change):
    await world.create(NODES, {"metadata": {"name": "real"}})
    before = await world.get(NODES, "real")
    with pytest.raises(commands.NotSimulated, match='"real" is not simulated'):
        await change(world.client, "real")
    after = await world.get(NODES, "real")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert "annotations" not in after["metadata"]


async def test_an_invalid_size_adds_no_node(world: World):
    with pytest.raises(ValueError, match="64cores"):
        await commands.add_some(world.client, 1, capacity="memory=1Gi,cpu=64cores")
    assert await commands.add_some(world.client, 1, capacity="cpu=64, memory=1Gi") == ["node-1"]
    await world.wait()
    assert (await world.get(NODES, "node-1"))["status"]["capacity"]["cpu"] == "64"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", []),
        ("cpu=8", []),
        ("cpu=8, memory=16Gi ,example.com/gpu=2,", []),
        ("cpu=8cores,memory", ["cpu=8cores", "memory"]),
        ("=1,cpu=", ["=1", "cpu="]),
        ("cpu=-1,pods=1.5,example.com/gpu=0.5", ["cpu=-1", "pods=1.5", "example.com/gpu=0.5"]),
        ("cpu=1.5,memory=1.5Gi,example.com/gpu=1k,pods=1e2", []),
    ],
)
def test_sizes(text: str, wrong: list[str]) -> None:
    assert shape.unreadable(text) == wrong
    taken = shape.capacity({shape.CAPACITY: text})
    assert set(wrong).isdisjoint(f"{name}={size}" for name, size in taken.items())


def test_invalid_parts_do_not_affect_others() -> None:
    assert shape.capacity({shape.CAPACITY: "cpu=x,pods=7"}) == {**shape.capacity({}), "pods": "7"}
