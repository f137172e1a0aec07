"""Runs controllers in a sandbox per test, on virtual time."""

import random
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import cache

from prometheus_client.parser import text_string_to_metric_families

from kcm_cli.cluster.cluster import Cluster
from kcm_cli.cluster.controllers import Alone
from kcm_cli.component.environment import Host, ServerCA
from kcm_cli.component.metrics import Registry
from kcm_cli.manager.config import Config, load
from kcm_cli.rest.transport import Around, Request, Response, Transport, TransportError
from kcm_cli.runtime.cause_ring import CauseRing
from tests.kit.world import World


class Faulty(Around):
    """A transport on which every so many requests fail: unsent, or sent with the answer lost."""

    def __init__(self, inner: Transport, rng: random.Random, share: float) -> None:
        super().__init__(inner)
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


@cache
def configured(*flags: str) -> Config:
    """The configuration of controllers that are neither limited nor synced without a reason, unless flags say so."""
    return load(("--kube-api-qps=-1", "--min-resync-period=0s", *flags))


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
    emulated: str = "",
    causes: CauseRing | None = None,
) -> AsyncIterator[None]:
    """While inside, these controllers run with these configurations. Gates are pairs as in --feature-gates.

    ``limited``: clients have the limit of --kube-api-qps's default. ``emulated``: the release (``1.33``) whose gates
    these are.
    """
    flags = [f"--feature-gates={component}:{gate}".replace("=:", "=") for component, gate in gates]
    flags += [f"--emulated-version={emulated}"] if emulated else []
    flags += ["--kube-api-qps=20"] if limited else []
    cluster = Cluster(
        clock=world.clock,
        rng=random.Random(3),
        connect=lambda component: transport or world.server.transport(),
        controllers=Alone(
            config=configured(*flags),
            only=frozenset(names),
            environment=(Host(simulated), ServerCA(ca_data), *configs),
            served=served,
            metrics=metrics or Registry(),
            causes=causes,
        ),
    )
    async with cluster.running() as running:
        yield
        for _, error in running.failed:
            raise error
        assert running.code is None
    for _, error in running.failed:
        raise error


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
