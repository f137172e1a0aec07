"""Controllers alone: without the port, lease and metrics server of a manager, on any clock."""

import asyncio
from typing import Any

import msgspec

from kcm_cli.cluster.cluster import Cluster
from kcm_cli.component.metrics import Registry
from kcm_cli.component.metrics.workqueue import WorkqueueCollector
from kcm_cli.manager.config import Config
from kcm_cli.manager.controller_map import all_controllers
from kcm_cli.manager.controllers import RunContext, run_controllers
from kcm_cli.manager.selection import choose
from kcm_cli.rest.builder import ClientSettings, RootClients
from kcm_cli.rest.client import Client
from kcm_cli.rest.discovery import discover
from kcm_cli.runtime.cause_ring import CauseRing
from kcm_cli.sandbox.means import split

DISCOVERY = "controller-discovery"
"""The component that asks which APIs are served."""


class Alone(msgspec.Struct, frozen=True, kw_only=True):
    """Controllers of a configuration. Each connects by its own name.

    only: the names of those to run, whatever --controllers and the gates say; None: as these say. without: names that
    are left out. served: API resources as group/version/plural; None: the server is asked. environment: values of
    ``component.environment`` other than the defaults, and groups of options in place of the configuration's. command:
    the first word of the user agent.
    """

    config: Config
    only: frozenset[str] | None = None
    without: frozenset[str] = frozenset()
    served: frozenset[str] | None = frozenset()
    environment: tuple[object, ...] = ()
    command: str = ClientSettings().command
    metrics: Registry = msgspec.field(default_factory=Registry)
    causes: CauseRing | None = None

    async def run(self, cluster: Cluster[Any], stop: asyncio.Event) -> int:
        """Run them until ``stop``. Raises StartError, and the error of a controller that crashed."""
        await run_controllers(await self._context(cluster), stop)
        return 0

    async def _context(self, cluster: Cluster[Any]) -> RunContext:
        connection = self.config.component.generic.client_connection
        settings = ClientSettings(connection.qps, connection.burst, command=self.command)
        served = self.served
        if served is None:
            asking = RootClients(cluster.connect(DISCOVERY), settings, cluster.clock)
            found = await discover(asking.discovery_client(DISCOVERY))
            served = frozenset(f"{one.gvr.group_version}/{one.gvr.plural}" for one in found.all())
        known = all_controllers()
        if self.only is None:
            chosen = choose(known, self.config.controllers, self.config.gates, served)
        else:
            chosen = tuple(one for one in known if one.name in self.only)
        queues, monotonic = WorkqueueCollector(self.metrics), cluster.clock.monotonic
        return RunContext(
            config=self.config,
            chosen=tuple(one for one in chosen if one.name not in self.without),
            clients=_Clients(cluster, settings),
            clock=cluster.clock,
            rng=split(cluster.rng),
            served=served,
            environment=self.environment,
            metrics=self.metrics,
            queue_metrics=lambda name: queues.queue(name, monotonic),
            causes=self.causes,
        )


class _Clients:
    """A client for each controller, by its own connection, so that writes can be attributed."""

    def __init__(self, cluster: Cluster[Any], settings: ClientSettings) -> None:
        self._cluster = cluster
        self._settings = settings
        self._clients: dict[str, Client] = {}

    def client(self, name: str) -> Client:
        client = self._clients.get(name)
        if client is None:
            user = RootClients(self._cluster.connect(name), self._settings, self._cluster.clock)
            client = self._clients[name] = user.client(name)
        return client
