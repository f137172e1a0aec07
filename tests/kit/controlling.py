"""Runs controllers in a sandbox per test, on virtual time."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from prometheus_client.parser import text_string_to_metric_families

from kcm_cli.component import featuregates
from kcm_cli.component.metrics import Registry
from kcm_cli.component.metrics.workqueue import WorkqueueCollector
from kcm_cli.component.surroundings import Host, ServerCA
from kcm_cli.component.version import effective_version
from kcm_cli.engine.context import Common
from kcm_cli.engine.door import Interceptor
from kcm_cli.manager.controller_map import all_controllers
from kcm_cli.manager.controllers import RunContext, run_controllers
from kcm_cli.rest.client import Client
from kcm_cli.rest.ratelimit import DEFAULT_BURST, DEFAULT_QPS, Unlimited, limiter
from kcm_cli.rest.transport import Request, Response, Stream, Transport, TransportError
from kcm_cli.runtime.cause_ring import CauseRing
from tests.kit.world import World


class Faulty:
    """A transport on which every so many requests fail: unsent, or sent with the answer lost."""

    def __init__(self, inner: Transport, rng: random.Random, share: float) -> None:
        self._inner = inner
        self._rng = rng
        self._share = share
        self.faults = 0

    async def send(self, request: Request) -> Response:
        if request.method == "GET" or self._rng.random() >= self._share:
            return await self._inner.send(request)
        self.faults += 1
        if self._rng.random() < 0.5:
            await self._inner.send(request)
        raise TransportError("the connection was lost")

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        return self._inner.stream(request)

    async def close(self) -> None:
        await self._inner.close()


class _Clients:
    def __init__(self, world: World, transport: Transport, *, limited: bool) -> None:
        self._world = world
        self._transport = transport
        self._limited = limited

    def client(self, name: str) -> Client:
        bound = limiter(DEFAULT_QPS, DEFAULT_BURST) if self._limited else Unlimited()
        return Client(self._transport, limiter=bound, user_agent=name, clock=self._world.clock)


@asynccontextmanager
async def controllers(
    world: World,
    *configs: object,
    names: Iterable[str],
    gates: Iterable[tuple[str, str]] = (),
    transport: Transport | None = None,
    metrics: Registry | None = None,
    simulated: bool = False,
    served: frozenset[str] = frozenset(),
    limited: bool = False,
    ca_data: bytes = b"",
    emulated: str = "1.36",
    interceptor: Interceptor | None = None,
    causes: CauseRing | None = None,
) -> AsyncIterator[None]:
    """While inside, these controllers run with these configurations. Gates are pairs as in --feature-gates.

    ``limited``: clients have the limits that --kube-api-qps and -burst have by default. ``emulated``: the release
    (``1.33``) whose gates these are.
    """
    resolved = featuregates.resolve(gates, effective_version([emulated], []))
    assert not resolved.problems
    registry = metrics or Registry()
    workqueues = WorkqueueCollector(registry)
    clients = _Clients(world, transport or world.server.transport(), limited=limited)
    wanted = set(names)
    stop = asyncio.Event()
    context = RunContext(
        chosen=tuple(descriptor for descriptor in all_controllers() if descriptor.name in wanted),
        clients=clients,
        root_clients=clients,
        common=Common(
            clock=world.clock,
            rng=random.Random(3),
            gates=resolved.gates,
            configs={type(config): config for config in (Host(simulated), ServerCA(ca_data), *configs)},
            served=served,
            metrics=registry,
            queue_metrics=lambda name: workqueues.queue(name, world.clock.monotonic),
            causes=causes,
        ),
        interceptor=interceptor,
    )
    task = asyncio.create_task(run_controllers(context, stop))
    try:
        yield
        assert not task.done()
    finally:
        stop.set()
        await task


def metric(metrics: Registry, name: str, /, **labels: str) -> float:
    """The sum of the series of a name that have these labels, as /metrics shows them."""
    return sum(
        sample.value
        for family in text_string_to_metric_families(metrics.expose().decode())
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


def adds(metrics: Registry, queue: str) -> float:
    """How many keys were added to a work queue."""
    return metric(metrics, "workqueue_adds_total", name=queue)
