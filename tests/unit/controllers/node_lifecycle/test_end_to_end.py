"""The controller's loops in a whole sandbox, on virtual time, while writes fail and zones come."""

import json
from typing import Any

from kcm_cli.component.generic_config import KubeCloudSharedConfig
from kcm_cli.controllers.node_lifecycle import controller
from kcm_cli.controllers.node_lifecycle.config import NodeLifecycleConfig
from kcm_cli.controllers.node_lifecycle.controller import NodeLifecycleController
from kcm_cli.engine.context import ControllerContext
from kcm_cli.rest.transport import Request, Transport
from kcm_cli.sandbox.nodes import commands
from tests.unit.controllers.controlling import controllers
from tests.unit.controllers.faults import Refusing
from tests.unit.sandbox.nodes.world import NODES, World, certificates, play

__all__ = ["certificates", "play"]

UNREACHABLE = "node.kubernetes.io/unreachable"


def running(world: World, transport: Transport) -> Any:
    configs = (NodeLifecycleConfig(), KubeCloudSharedConfig())
    return controllers(world, *configs, names=["node-lifecycle-controller"], transport=transport)


async def taints(world: World, name: str) -> set[tuple[str, str]]:
    spec = (await world.get(NODES, name))["spec"]
    return {(taint["key"], taint["effect"]) for taint in spec.get("taints", [])}


async def names(world: World) -> list[str]:
    nodes = json.loads(await world.client.list_page(NODES, ""))["items"]
    return sorted(node["metadata"]["name"] for node in nodes)


def test_it_goes_on_when_a_taint_cannot_be_removed(play):
    async def life(world: World) -> None:
        name = (await names(world))[0]
        taint = {"key": UNREACHABLE, "effect": "NoExecute"}
        await world.patch(NODES, name, {"spec": {"taints": [taint]}})
        broken = [True]
        transport = Refusing(world.server.transport(), lambda request: broken[0] and request.method == "PATCH")
        async with running(world, transport):
            await world.wait(20)
            assert transport.refused
            assert (UNREACHABLE, "NoExecute") in await taints(world, name)
            broken[0] = False
            await world.wait(20)
            assert await taints(world, name) == set()

    play(life)


def test_a_zone_may_come_while_a_node_is_tainted(play):
    async def life(world: World) -> None:
        name = (await names(world))[0]
        came = []

        async def before(request: Request) -> None:
            if not came and request.method == "PATCH" and b"NoExecute" in request.body:
                came.append(request.path)
                labels = {"topology.kubernetes.io/zone": "new"}
                await world.create(NODES, {"metadata": {"name": "late", "labels": labels}})
                await world.wait(30)

        async with running(world, Refusing(world.server.transport(), lambda request: False, before)):
            await world.wait(10)
            await commands.fail(world.client, name)
            await world.wait(120)
            assert came
            assert (UNREACHABLE, "NoExecute") in await taints(world, name)

    play(life)


def test_nothing_is_remembered_of_a_tainted_node_that_is_deleted(play, monkeypatch):
    made: list[NodeLifecycleController] = []

    def make(context: ControllerContext) -> NodeLifecycleController:
        made.append(NodeLifecycleController(context))
        return made[-1]

    monkeypatch.setattr(controller, "NodeLifecycleController", make)

    async def life(world: World) -> None:
        name = (await names(world))[0]
        async with running(world, world.server.transport()):
            await world.wait(10)
            await commands.fail(world.client, name)
            await world.wait(120)
            assert (UNREACHABLE, "NoExecute") in await taints(world, name)
            await world.delete(NODES, name)
            await world.wait(20)
            assert name not in await names(world)
            state = vars(made[0])
            assert name not in state["_health"]
            assert not any(queue.remove(name) for queue in state["_queues"].values())

    play(life)
