"""A whole cluster on virtual time: API server, nodes, scheduler, and managers that see faults.

The same seed gives the same run, fault by fault. Only the manager's requests fail; what a test looks at is the
server's own store.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from typing import TypeVar

from msgspec.structs import replace

from kcm_cli.api.resource import GVR
from kcm_cli.component.clock import LoopClock
from kcm_cli.component.metrics import Registry
from kcm_cli.component.surroundings import DEFAULTS
from kcm_cli.component.virtual import run
from kcm_cli.engine.context import Common
from kcm_cli.engine.door import Interceptor
from kcm_cli.machinery.codec import Doc
from kcm_cli.manager.config import Config, load
from kcm_cli.manager.config_controllers import known_of
from kcm_cli.manager.controller_map import CONTROLLERS
from kcm_cli.manager.controllers import RunContext, run_controllers
from kcm_cli.manager.selection import choose
from kcm_cli.rest.client import Client
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.rest.transport import Transport
from kcm_cli.sandbox.apiserver.entry.fault import Fault
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from kcm_cli.sandbox.cluster import Cluster, ClusterOptions
from kcm_cli.sandbox.embedded import EmbeddedServer

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
NAMESPACE = "sim"
T = TypeVar("T")


@cache
def _certificates() -> Certificates:
    return Certificates.load(None, EPOCH)


@cache
def _config() -> Config:
    return load([], known_of(CONTROLLERS))


class _Clients:
    """All clients of one manager share its (faulty) transport."""

    def __init__(self, transport: Transport, clock: LoopClock) -> None:
        self._transport = transport
        self._clock = clock

    def client(self, name: str) -> Client:
        return Client(self._transport, limiter=Unlimited(), user_agent=f"kcm/{name}", clock=self._clock)


class World:
    """The cluster of one run. ``start`` first."""

    def __init__(self, seed: int, nodes: int = 3) -> None:
        self.rng = random.Random(seed)
        self.clock = LoopClock(EPOCH)
        self.server = EmbeddedServer(self.clock, random.Random(seed + 1), _certificates())
        self.client = Client(self.server.transport(), limiter=Unlimited(), user_agent="sim", clock=self.clock)
        self._cluster = Cluster(self.server.transport(), self.clock, random.Random(seed + 2), ClusterOptions(nodes))
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        self.clock.now()
        await self.server.start()
        self._tasks.append(asyncio.ensure_future(self._cluster.run()))
        await self.create("v1/namespaces", {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": NAMESPACE}})

    async def stop(self) -> None:
        for task in reversed(self._tasks):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def manager(
        self,
        faults: Sequence[Fault] = (),
        only: tuple[str, ...] = (),
        interceptor: Interceptor | None = None,
        through: Callable[[Transport], Transport] = lambda transport: transport,
        metrics: Registry | None = None,
    ) -> "asyncio.Task[None]":
        """Start a manager that sees these faults; cancel the task to kill it, as SIGKILL does.

        ``only``: the aliases of the controllers to run, if not all (long times are cheap without periodic ones).
        ``interceptor``: stands between its controllers' writes and the server. ``through``: what stands between it and
        the server. ``metrics``: where it counts.
        """
        rng = random.Random(self.rng.random())
        self.server.api.faults.clear()
        for fault in faults:
            self.server.api.faults.add(replace(fault, user_agent="kcm/*", seed=rng.getrandbits(32)))
        clients = _Clients(through(self.server.transport()), self.clock)
        config = _config()
        names = {d.name for d in CONTROLLERS if not only or d.alias in only}
        chosen = choose(CONTROLLERS, names, config.gates, frozenset())
        context = RunContext(
            chosen=chosen,
            clients=clients,
            root_clients=clients,
            common=Common(
                clock=self.clock,
                rng=rng,
                gates=config.gates,
                metrics=metrics or Registry(),
                configs=config.by_type() | {type(default): default for default in DEFAULTS},
            ),
            interceptor=interceptor,
        )
        return asyncio.ensure_future(run_controllers(context, asyncio.Event()))

    # -- what a user does

    async def create(self, path: str, doc: Doc) -> None:
        await self.client.create(_resource(path), NAMESPACE if "namespaces" not in path else "", doc)

    def objects(self, path: str) -> list[Doc]:
        """The objects of a resource (``apps/v1/deployments``) as the store has them."""
        found: list[Doc] = []
        for stored in self.server.store.list(_gvr(path), NAMESPACE):
            found.append(stored.doc)
        return found


def _gvr(path: str) -> GVR:
    *group, version, plural = path.split("/")
    return GVR("/".join(group), version, plural)


def _resource(path: str):  # type: ignore[no-untyped-def]  # any resource by its path, documents in and out
    from kcm_cli.api.resource import Resource
    from kcm_cli.machinery.meta import PartialObject

    gvr = _gvr(path)
    return Resource(gvr, "", PartialObject, gvr.plural != "namespaces")


def simulate(seed: int, story: Callable[[World], Awaitable[T]]) -> T:
    """Run a story on a fresh world, on virtual time; what it returns."""

    async def whole() -> T:
        world = World(seed)
        await world.start()
        try:
            return await story(world)
        finally:
            await world.stop()

    return run(whole())
