"""Clusters to plan on: a whole simulated one lives for a while, and a snapshot is taken of it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from kcm_cli.api.apps import DEPLOYMENTS
from kcm_cli.component.virtual import VirtualLoop
from kcm_cli.plan import Answer, Options, Scale, SetImage, Target, plan
from kcm_cli.plan.collect import collect
from kcm_cli.plan.snapshot import Snapshot
from kcm_cli.planning.actions import MERGE
from kcm_cli.rest.client import Client
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.rest.read_only import ReadOnly
from kcm_cli.rest.transport import Transport
from kcm_cli.sandbox.nodes.shape import CAPACITY
from kcm_cli.sandbox.views import NODES
from tests.kit.simulation import NAMESPACE, World, simulate
from tests.kit.workload import deployment, job, stateful_set

Tree = dict[str, Any]


def client(transport: Transport, world: World) -> Client:
    return Client(ReadOnly(transport), limiter=Unlimited(), user_agent="plan", clock=world.clock)


def snapshot_of(
    story: Callable[[World], Awaitable[object]], *, include: Sequence[str] = (), controllers: tuple[str, ...] = ()
) -> Snapshot:
    """Let a cluster live through a story, with a manager on it, and read it."""

    async def whole(world: World) -> Snapshot:
        manager = world.manager(only=controllers)
        await story(world)
        snapshot = await collect(client(world.server.transport(), world), world.clock, include=include)
        manager.cancel()
        with suppress(asyncio.CancelledError):
            await manager
        return snapshot

    return simulate(1, whole)


_LIVING: dict[Callable[[World], Awaitable[object]], tuple[asyncio.Runner, World]] = {}


def living(story: Callable[[World], Awaitable[object]]) -> tuple[asyncio.Runner, World]:
    """A cluster that has lived through a story, with a manager on it; no time passes but in what its runner runs.

    It is shared by those who only read; ``end_clusters`` ends all.
    """
    if story not in _LIVING:
        runner, world = asyncio.Runner(loop_factory=VirtualLoop), World(1)

        async def begin() -> None:
            await world.start()
            world.manager()
            await story(world)

        runner.run(begin())
        _LIVING[story] = runner, world
    return _LIVING[story]


def end_clusters() -> None:
    """End the clusters that are shared."""
    while _LIVING:
        _, (runner, _) = _LIVING.popitem()
        runner.close()


def budget(name: str, **spec: object) -> Tree:
    metadata = {"name": name, "namespace": NAMESPACE}
    whole = {"selector": {"matchLabels": {"app": name}}, **spec}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": whole}


def service(name: str) -> Tree:
    spec = {"selector": {"app": name}, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}


async def settle_workloads(world: World) -> None:
    """Deployments, a StatefulSet with a budget that allows no eviction, a Job that is over, a Service."""
    await world.create("apps/v1/deployments", deployment("web", 5))
    await world.create("apps/v1/deployments", deployment("api", 3))
    await world.create("apps/v1/statefulsets", stateful_set("db", 3))
    await world.create("batch/v1/jobs", job("work", 4))
    await world.create("policy/v1/poddisruptionbudgets", budget("db", minAvailable=3))
    await world.create("v1/services", service("web"))
    await world.clock.sleep(120)


@cache
def settled() -> Snapshot:
    """A cluster that has settled, of three nodes."""
    return snapshot_of(settle_workloads)


@cache
def crowded() -> Snapshot:
    """The same where three dozen pods are all that the nodes take."""

    async def story(world: World) -> None:
        await world.clock.sleep(5)
        for name in ("node-1", "node-2", "node-3"):
            body = {"metadata": {"annotations": {CAPACITY: "pods=12"}}}
            await world.client.patch(NODES, "", name, body, content_type=MERGE)
        await settle_workloads(world)

    return snapshot_of(story)


@cache
def lived() -> tuple[Snapshot, ...]:
    """A cluster before a change, right after it, after it, and after others. ``planned`` is the plan of the change."""

    async def whole(world: World) -> tuple[Snapshot, ...]:
        manager = world.manager()
        await settle_workloads(world)
        await world.clock.sleep(30)

        async def read() -> Snapshot:
            return await collect(client(world.server.transport(), world), world.clock)

        before = await read()
        image = {"spec": {"replicas": 6, "template": {"spec": {"containers": [{"name": "c", "image": "app:2"}]}}}}
        await world.client.patch(DEPLOYMENTS, NAMESPACE, "web", image)
        await world.clock.sleep(0.02)
        soon = await read()
        await world.clock.sleep(120)
        after = await read()
        await world.client.patch(DEPLOYMENTS, NAMESPACE, "web", {"spec": {"replicas": 4}})
        await world.create("apps/v1/deployments", deployment("unplanned", 1))
        await world.clock.sleep(60)
        others = await read()
        manager.cancel()
        with suppress(asyncio.CancelledError):
            await manager
        return before, soon, after, others

    return simulate(1, whole)


@cache
def planned() -> Answer:
    """The plan of the change that ``lived`` makes: another image, and a sixth replica."""
    web = Target("deploy", "web", NAMESPACE)
    return plan(lived()[0], [SetImage(web, "app:2"), Scale(web, 6)], Options(horizon_s=300))
