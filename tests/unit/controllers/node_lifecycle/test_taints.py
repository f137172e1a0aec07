"""The taints of nodes that are not ready."""

from typing import Any, cast

from kcm_cli.api import core
from kcm_cli.api.core import Condition
from kcm_cli.component.clock import LoopClock
from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.node_lifecycle.metrics import NodeMetrics
from kcm_cli.controllers.node_lifecycle.taints import EvictionTaints
from kcm_cli.engine.context import ControllerContext
from kcm_cli.runtime.store import Store
from tests.kit.world import NODES, World

UNREACHABLE = "node.kubernetes.io/unreachable"


class Context:
    """What these taints need of a controller's context."""

    def __init__(self, world: World) -> None:
        self.clock, self.client = LoopClock(), world.client
        self.store: Any = Store()

    def cache(self, resource: object) -> "Context":
        return self


async def test_a_taint_goes_that_the_nodes_of_the_check_are_too_old_to_show(world: World) -> None:
    """A check reads a node anew when its status could not be written."""
    name = (await world.items(NODES))[0]["metadata"]["name"]
    old = await world.client.get(core.NODES, "", name)
    taint = {"key": UNREACHABLE, "effect": "NoExecute"}
    await world.patch(NODES, name, {"spec": {"taints": [taint]}})
    fresh = await world.client.get(core.NODES, "", name)
    taints = EvictionTaints(cast("ControllerContext", Context(world)), NodeMetrics(Registry()), 0.0)
    await taints.follow(fresh, Condition(type="Ready", status="Unknown"))
    await taints.let_off([old])
    assert not (await world.get(NODES, name))["spec"].get("taints")


async def test_a_ready_condition_of_an_unknown_status_leaves_the_taints(world: World) -> None:
    name = (await world.items(NODES))[0]["metadata"]["name"]
    await world.patch(NODES, name, {"spec": {"taints": [{"key": UNREACHABLE, "effect": "NoExecute"}]}})
    node = await world.client.get(core.NODES, "", name)
    taints = EvictionTaints(cast("ControllerContext", Context(world)), NodeMetrics(Registry()), 0.0)
    for status, left in ("Perhaps", True), ("", True), ("True", False):
        await taints.follow(node, Condition(type="Ready", status=status))
        assert bool((await world.get(NODES, name))["spec"].get("taints")) is left
