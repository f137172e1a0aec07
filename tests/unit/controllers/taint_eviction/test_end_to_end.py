"""The controller in a whole sandbox, on virtual time, while deletions fail."""

import pytest

from tests.unit.controllers.controlling import controllers
from tests.unit.controllers.faults import Refusing
from tests.unit.sandbox.nodes.world import NODES, World, certificates, play

__all__ = ["certificates", "play"]


def test_a_failed_eviction_is_tried_again_at_once(play):
    async def life(world: World) -> None:
        toleration = {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        await world.pod("p", {"tolerations": [toleration], "terminationGracePeriodSeconds": 1})
        await world.wait(5)
        broken = [True]
        transport = Refusing(world.server.transport(), lambda request: broken[0] and request.method == "DELETE")
        async with controllers(world, names=["taint-eviction-controller"], transport=transport):
            taint = {"key": "k", "effect": "NoExecute"}
            await world.patch(NODES, await world.node_of("p"), {"spec": {"taints": [taint]}})
            await world.wait(290)
            assert not transport.refused
            await world.wait(20)
            assert transport.refused
            assert not await world.gone("p")
            broken[0] = False
            await world.wait(60)
            assert await world.gone("p")

    play(life)


def tolerated(key: str, seconds: int) -> dict:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}


@pytest.mark.parametrize(
    ("later", "gone", "told"),
    [
        pytest.param(["a", "strange"], True, ["Cancelling", "Marking"], id="one that is not tolerated"),
        pytest.param(["a", "short"], False, [], id="one that is tolerated for a shorter time"),
        pytest.param([], False, ["Cancelling"], id="no taint any longer"),
    ],
)
def test_taints_that_change_while_an_eviction_is_due(play, later, gone, told):
    async def life(world: World) -> None:
        tolerations = [tolerated("a", 300), tolerated("short", 5)]
        await world.pod("p", {"tolerations": tolerations, "terminationGracePeriodSeconds": 1})
        await world.wait(5)
        node = await world.node_of("p")
        async with controllers(world, names=["taint-eviction-controller"]):
            for keys in (["a"], later):
                taints = [{"key": key, "effect": "NoExecute"} for key in keys]
                await world.patch(NODES, node, {"spec": {"taints": taints}})
                await world.wait(20)
            assert await world.gone("p") == gone
            messages = [text for reason, text in await world.events("p") if reason == "TaintManagerEviction"]
            assert [text.split()[0] for text in messages] == told

    play(life)
