"""The controller in a whole sandbox, on virtual time, while deletions fail."""

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
