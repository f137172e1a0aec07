"""A cluster, composed once, from top to bottom in the order in which its parts start:

    server > caches > Events > nodes > storage > scheduler > controllers

They end in the opposite order. ``kcm sandbox``, ``kcm_cli.testing``, the twins of ``kcm plan``, simulations and
benchmarks differ in what they pass.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from kcm_cli.component.clock import Clock
from kcm_cli.component.version import GIT_VERSION
from kcm_cli.rest.client import Client
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.rest.transport import Transport
from kcm_cli.runtime.cause_ring import CauseRing
from kcm_cli.runtime.events.counted import EventNames
from kcm_cli.runtime.informers import Informers
from kcm_cli.runtime.tasks import Tasks, innermost
from kcm_cli.sandbox.events import Events
from kcm_cli.sandbox.means import Means, split
from kcm_cli.sandbox.scheduler.scheduler import Scheduler
from kcm_cli.sandbox.storage.driver import StorageDriver

EVENT_OFFSET_NS = 500
"""Added to the times in the names of Events of kubelets and scheduler, since the manager may emit some at that time."""


class Part(Protocol):
    """Runs until it is cancelled."""

    async def run(self) -> None: ...


N = TypeVar("N", bound=Part)


class Controllers(Protocol):
    """The controllers of a cluster: ``manager.SandboxManager``, or ``controllers.Alone``."""

    async def run(self, cluster: "Cluster[Any]", stop: asyncio.Event) -> int:
        """Run them until ``stop`` is set; returns an exit code."""


class Cluster(msgspec.Struct, Generic[N], frozen=True, kw_only=True):
    """What a cluster is made of.

    rng: of the nodes; other parts take sources of their own from it. connect: how a component, named, sends requests
    to the API server, with an administrator's rights. server: starts and ends with the cluster; by default it runs
    already. nodes: None for a cluster that has neither nodes nor storage nor scheduler. storage: provisions and
    attaches volumes. causes: the record of what nodes, storage and scheduler do, and why; None for none.
    """

    clock: Clock
    rng: random.Random
    connect: Callable[[str], Transport]
    server: AbstractAsyncContextManager[object] = msgspec.field(default_factory=nullcontext)
    nodes: Callable[[Means], N] | None = None
    storage: Callable[[Means], Part] = StorageDriver
    scheduler: Callable[[Means], Part] = Scheduler
    controllers: Controllers | None = None
    causes: CauseRing | None = None

    @asynccontextmanager
    async def running(self, stop: asyncio.Event | None = None) -> AsyncIterator["Running[N]"]:
        """Run while inside. ``stop`` is set when a part fails or the controllers end, and ends the controllers."""
        running = Running(self, stop or asyncio.Event())
        async with self.server, running.simulated(), running.controlled():
            yield running


class Running(Generic[N]):
    """A cluster that runs.

    nodes: those of the cluster, if it has any. failed: the parts that have ended by an error. code: the exit code of
    the controllers, once they have ended.
    """

    nodes: N

    def __init__(self, cluster: Cluster[N], stop: asyncio.Event) -> None:
        self._cluster = cluster
        self.stop = stop
        self.failed: list[tuple[str, BaseException]] = []
        self.code: int | None = None

    def client(self, component: str) -> Client:
        """A client without a limit."""
        agent = f"{component}/{GIT_VERSION} (linux/amd64) kubernetes/kcm"
        transport = self._cluster.connect(component)
        return Client(transport, limiter=Unlimited(), user_agent=agent, clock=self._cluster.clock)

    @asynccontextmanager
    async def simulated(self) -> AsyncIterator[None]:
        """Run what takes the place of machines: nodes, storage, and the scheduler that knows them."""
        made = self._cluster
        if made.nodes is None:
            yield
            return
        clock, rng = made.clock, made.rng
        kubelet = self.client("kubelet")
        informers = Informers(kubelet, clock, split(rng))
        names = EventNames(clock, EVENT_OFFSET_NS)
        events = Events(kubelet, names, clock)
        means = Means(
            connect=self.client,
            kubelet=kubelet,
            informers=informers,
            names=names,
            events=events,
            clock=clock,
            rng=rng,
            causes=made.causes,
        )
        self.nodes = made.nodes(means)
        storage, scheduler = made.storage(means), made.scheduler(means)
        tasks = Tasks(self._ended)
        informers.start(tasks)
        parts: tuple[tuple[str, Part], ...] = (("nodes", self.nodes), ("storage", storage), ("scheduler", scheduler))
        for name, part in (*parts, ("events", events)):
            tasks.start(name, part.run())
        try:
            yield
        finally:
            await tasks.stop()

    @asynccontextmanager
    async def controlled(self) -> AsyncIterator[None]:
        """Run the controllers."""
        controllers = self._cluster.controllers
        if controllers is None:
            yield
            return

        async def control() -> None:
            self.code = await controllers.run(self._cluster, self.stop)
            self.stop.set()

        tasks = Tasks(self._ended)
        work = tasks.start("controllers", control())
        try:
            yield
            self.stop.set()
            await asyncio.wait([work])
        finally:
            await tasks.stop()

    def _ended(self, name: str, error: BaseException) -> None:
        self.failed.append((name, innermost(error)))
        self.stop.set()
