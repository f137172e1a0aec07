"""A whole cluster on virtual time: API server, nodes, scheduler, and managers that see faults.

The same seed gives the same run, fault by fault. Only the manager's requests fail; what a test looks at is the
server's own store.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from datetime import UTC, datetime
from functools import cache
from typing import TypeVar

from msgspec.structs import replace

from kcm_cli.api.resource import GVR, Resource
from kcm_cli.cluster.cluster import Cluster
from kcm_cli.cluster.controllers import Alone
from kcm_cli.component.clock import LoopClock
from kcm_cli.component.metrics import Registry
from kcm_cli.component.virtual import run
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import PartialObject
from kcm_cli.manager.controller_map import CONTROLLERS
from kcm_cli.rest.client import Client
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.rest.transport import Around, Request, Response, Stream, Transport, Unreachable
from kcm_cli.runtime.cause_ring import CauseRing
from kcm_cli.sandbox.apiserver.entry.fault import Fault
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from kcm_cli.sandbox.client_causes import ClientCauses
from kcm_cli.sandbox.nodes.agents import NodeOptions
from kcm_cli.sandbox.run import MANAGER
from tests.kit.controlling import configured
from tests.kit.embedded import EmbeddedServer
from tests.kit.world import simulated

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
NAMESPACE = "sim"
T = TypeVar("T")


@cache
def _certificates() -> Certificates:
    return Certificates.load(None, EPOCH)


OFF_BY_DEFAULT = tuple(one.name for one in CONTROLLERS if not one.default_enabled)


class _UntilKilled(Around):
    """The transport of a manager, which sends nothing once its task is cancelled, however long that takes to end."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self.task: asyncio.Task[int] | None = None

    async def send(self, request: Request) -> Response:
        self._check()
        return await self._inner.send(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        self._check()
        return self._inner.stream(request)

    def _check(self) -> None:
        if self.task is not None and self.task.cancelling():
            raise Unreachable("the manager was killed")


class World:
    """The cluster of one run. ``start`` first."""

    def __init__(
        self,
        seed: int,
        options: NodeOptions = NodeOptions(),  # noqa: B008 - it is frozen
        *,
        recorded: bool = False,
    ) -> None:
        """recorded: what all parts and clients do is in ``causes``, but for managers that are started without it."""
        self.rng = random.Random(seed)
        self.clock = LoopClock(EPOCH)
        self.server = EmbeddedServer(self.clock, random.Random(seed + 1), _certificates())
        self.client = Client(self.server.transport(), limiter=Unlimited(), user_agent="sim", clock=self.clock)
        self.causes = CauseRing(self.clock) if recorded else None
        if self.causes is not None:
            self.server.api.observe(ClientCauses(self.causes).observe)
        made = simulated(self.server.transport(), self.clock, random.Random(seed + 2), options)
        self._cluster = replace(made, connect=self.server.component, causes=self.causes)
        self._parts = AsyncExitStack()

    async def start(self) -> None:
        self.clock.now()
        await self.server.start()
        await self._parts.enter_async_context(self._cluster.running())
        await self.create("v1/namespaces", {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": NAMESPACE}})

    async def stop(self) -> None:
        await self._parts.aclose()

    def manager(
        self,
        faults: Sequence[Fault] | None = (),
        only: tuple[str, ...] = (),
        through: Callable[[Transport], Transport] = lambda transport: transport,
        metrics: Registry | None = None,
        flags: tuple[str, ...] = (),
        served: frozenset[str] = frozenset(),
        causes: CauseRing | None = None,
    ) -> "asyncio.Task[int]":
        """Start a manager that sees these faults; cancel the task to kill it, as SIGKILL does.

        ``faults``: None for those that there are. ``only``: names or aliases of the controllers to run, if not all
        (long times are cheap without periodic ones). ``through``: what stands between it and the server. ``metrics``:
        where it counts. ``flags``: of its command line, but for --controllers. ``served``: API resources as
        group/version/plural, for those controllers that ask whether there are theirs. ``causes``: records what they do,
        and why.
        """
        rng = random.Random(self.rng.random())
        if faults is not None:
            self.server.api.faults.clear()
        for fault in faults or ():
            self.server.api.faults.add(replace(fault, user_agent="kcm/*", seed=rng.getrandbits(32)))
        transport = _UntilKilled(through(self.server.transport(MANAGER)))
        controllers = Alone(
            config=configured(f"--controllers={','.join(('*', *OFF_BY_DEFAULT))}", *flags),
            only=frozenset(one.name for one in CONTROLLERS if {one.name, one.alias} & {*only}) or None,
            served=served,
            command="kcm",
            metrics=metrics or Registry(),
            causes=causes,
        )
        cluster = Cluster(clock=self.clock, rng=rng, connect=lambda component: transport, controllers=controllers)
        transport.task = asyncio.ensure_future(controllers.run(cluster, asyncio.Event()))
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
    options: NodeOptions = NodeOptions(),  # noqa: B008 - it is frozen
    *,
    recorded: bool = False,
) -> T:
    """Run a story on a fresh world, on virtual time; what it returns."""

    async def whole() -> T:
        world = World(seed, options, recorded=recorded)
        await world.start()
        try:
            return await story(world)
        finally:
            await world.stop()

    return run(whole())
