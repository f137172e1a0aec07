"""The taints of nodes that are not ready."""

from typing import Any, cast

import msgspec
import pytest

from kcm_cli.api import core
from kcm_cli.api.core import Condition
from kcm_cli.component.clock import LoopClock
from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.node_lifecycle.metrics import NodeMetrics
from kcm_cli.controllers.node_lifecycle.taints import EvictionTaints
from kcm_cli.engine.context import ControllerContext
from kcm_cli.runtime.store import Store
from tests.kit.controlling import metric
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


@pytest.mark.parametrize("waits", [True, False], ids=["queued", "has the other taint"])
async def test_a_node_that_is_ready_again_by_its_latest_version_gets_no_taint(world: World, waits) -> None:
    """It reports in the moment in which it is to be tainted, and the cache does not show that."""
    name = (await world.items(NODES))[0]["metadata"]["name"]
    other = {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}
    await world.patch(NODES, name, {"spec": {"taints": None if waits else [other]}})
    node = await world.client.get(core.NODES, "", name)
    silent = Condition(type="Ready", status="Unknown")
    known = msgspec.structs.replace(node, status=msgspec.structs.replace(node.status, conditions=(silent,)))
    await world.patch(NODES, name, {"metadata": {"labels": {"its": "report"}}})
    context = Context(world)
    context.store.put(known)
    metrics = Registry()
    taints = EvictionTaints(cast("ControllerContext", context), NodeMetrics(metrics), 10.0)
    await taints.follow(known, silent)
    await taints.evict()
    assert metric(metrics, "node_collector_evictions_total") == 0
    left = (await world.get(NODES, name))["spec"].get("taints", [])
    assert [taint["key"] for taint in left] == ([] if waits else [other["key"]])
