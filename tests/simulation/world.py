"""A whole cluster on virtual time: API server, nodes, scheduler, and managers that see faults.

The same seed gives the same run, fault by fault. Only the manager's requests fail; what a test looks at is the
server's own store.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from datetime import UTC, datetime
from functools import cache
from typing import TypeVar

from msgspec.structs import replace

from kcm_cli.api.resource import GVR, Resource
from kcm_cli.component.clock import LoopClock
from kcm_cli.component.metrics import Registry
from kcm_cli.component.surroundings import DEFAULTS
from kcm_cli.component.virtual import run
from kcm_cli.engine.context import Common
from kcm_cli.engine.door import Interceptor
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import PartialObject
from kcm_cli.manager.config import Config, load
from kcm_cli.manager.controller_map import CONTROLLERS
from kcm_cli.manager.controllers import RunContext, run_controllers
from kcm_cli.manager.selection import choose
from kcm_cli.rest.client import Client
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.rest.transport import Request, Response, Stream, Transport, Unreachable
from kcm_cli.runtime.cause_ring import CauseRing
from kcm_cli.sandbox.apiserver.entry.fault import Fault
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from kcm_cli.sandbox.cluster import Cluster, ClusterOptions
from tests.kit.embedded import EmbeddedServer

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
NAMESPACE = "sim"
T = TypeVar("T")


@cache
def _certificates() -> Certificates:
    return Certificates.load(None, EPOCH)


@cache
def _config(flags: tuple[str, ...]) -> Config:
    return load(flags)


class _Clients:
    """All clients of one manager share its (faulty) transport."""

    def __init__(self, transport: Transport, clock: LoopClock) -> None:
        self._transport = transport
        self._clock = clock

    def client(self, name: str) -> Client:
        return Client(self._transport, limiter=Unlimited(), user_agent=f"kcm/{name}", clock=self._clock)


class _UntilKilled:
    """The transport of a manager, which sends nothing once its task is cancelled, however long that takes to end."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.task: asyncio.Task[None] | None = None

    async def send(self, request: Request) -> Response:
        self._check()
        return await self._transport.send(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        self._check()
        return self._transport.stream(request)

    async def close(self) -> None:
        await self._transport.close()

    def _check(self) -> None:
        if self.task is not None and self.task.cancelling():
            raise Unreachable("the manager was killed")


class World:
    """The cluster of one run. ``start`` first."""

    def __init__(self, seed: int, options: ClusterOptions = ClusterOptions()) -> None:  # noqa: B008 - it is frozen
        self.rng = random.Random(seed)
        self.clock = LoopClock(EPOCH)
        self.server = EmbeddedServer(self.clock, random.Random(seed + 1), _certificates())
        self.client = Client(self.server.transport(), limiter=Unlimited(), user_agent="sim", clock=self.clock)
        self._cluster = Cluster(self.server.transport(), self.clock, random.Random(seed + 2), options)
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
        flags: tuple[str, ...] = (),
        served: frozenset[str] = frozenset(),
        causes: CauseRing | None = None,
    ) -> "asyncio.Task[None]":
        """Start a manager that sees these faults; cancel the task to kill it, as SIGKILL does.

        ``only``: names or aliases of the controllers to run, if not all (long times are cheap without periodic ones).
        ``interceptor``: stands between its controllers' writes and the server. ``through``: what stands between it and
        the server. ``metrics``: where it counts. ``flags``: of its command line, but for --controllers. ``served``: API
        resources as group/version/plural, for those controllers that ask whether there are theirs. ``causes``: records
        what they do, and why.
        """
        rng = random.Random(self.rng.random())
        self.server.api.faults.clear()
        for fault in faults:
            self.server.api.faults.add(replace(fault, user_agent="kcm/*", seed=rng.getrandbits(32)))
        transport = _UntilKilled(through(self.server.transport()))
        clients = _Clients(transport, self.clock)
        config = _config(flags)
        names = {d.name for d in CONTROLLERS if not only or {d.name, d.alias} & {*only}}
        chosen = choose(CONTROLLERS, names, config.gates, served)
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
                served=served,
                causes=causes,
            ),
            interceptor=interceptor,
        )
        transport.task = asyncio.ensure_future(run_controllers(context, asyncio.Event()))
        return transport.task

    # -- what a user does

    async def create(self, path: str, doc: Doc, namespace: str = NAMESPACE) -> None:
        """Create an object of a resource; an empty namespace stands for the whole cluster."""
        namespace = "" if "namespaces" in path else namespace
        await self.client.create(_resource(path, namespaced=bool(namespace)), namespace, doc)

    def objects(self, path: str, namespace: str = NAMESPACE) -> list[Doc]:
        """The objects of a resource (``apps/v1/deployments``) as the store has them."""
        found: list[Doc] = []
        for stored in self.server.store.list(_gvr(path), namespace):
            found.append(stored.doc)
        return found


def _gvr(path: str) -> GVR:
    *group, version, plural = path.split("/")
    return GVR("/".join(group), version, plural)


def _resource(path: str, *, namespaced: bool) -> Resource[PartialObject]:
    return Resource(_gvr(path), "", PartialObject, namespaced)


def simulate(
    seed: int,
    story: Callable[[World], Awaitable[T]],
    options: ClusterOptions = ClusterOptions(),  # noqa: B008 - it is frozen
) -> T:
    """Run a story on a fresh world, on virtual time; what it returns."""

    async def whole() -> T:
        world = World(seed, options)
        await world.start()
        try:
            return await story(world)
        finally:
            await world.stop()

    return run(whole())
