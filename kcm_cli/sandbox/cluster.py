"""The simulated parts of a cluster around an API server: nodes and a scheduler.

They are ordinary clients of the API server, with any transport and any clock.
"""

import asyncio
import logging
import random
from collections.abc import Sequence

import msgspec

from kcm_cli.component.clock import Clock
from kcm_cli.component.version import GIT_VERSION
from kcm_cli.rest.client import Client
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.rest.transport import RequestError, Transport
from kcm_cli.runtime.events.counted import EventNames
from kcm_cli.runtime.informers import Informers
from kcm_cli.runtime.tasks import Tasks
from kcm_cli.sandbox.events import Events
from kcm_cli.sandbox.nodes import HEARTBEAT_S
from kcm_cli.sandbox.nodes.agents import Means, Renewals
from kcm_cli.sandbox.nodes.nodes import Nodes
from kcm_cli.sandbox.nodes.rules import Rule
from kcm_cli.sandbox.scheduler.listers import listers
from kcm_cli.sandbox.scheduler.scheduler import Scheduler
from kcm_cli.sandbox.storage.driver import StorageDriver

log = logging.getLogger(__name__)
RETRY_S = 1.0
EVENT_OFFSET_NS = 500
"""Added to the times in the names of Events of kubelets and scheduler, since the manager may emit some at that time."""


class ClusterOptions(msgspec.Struct, frozen=True):
    """The initial number of nodes, and the interval of their heartbeats.

    ranged: nodes get pod CIDRs from the sandbox; otherwise the node-ipam controller has to allocate them. rules: rules
    for pods, beside those of objects. renewals: renews the Leases of very many nodes.
    """

    nodes: int = 3
    heartbeat_s: float = HEARTBEAT_S
    ranged: bool = True
    rules: Sequence[Rule] = ()
    renewals: Renewals | None = None


class Cluster:
    """Nodes and a scheduler for one API server. ``transport`` must have an administrator's rights. Its watches last for
    a day."""

    def __init__(
        self, transport: Transport, clock: Clock, rng: random.Random, options: ClusterOptions | None = None
    ) -> None:
        self._clock = clock
        self._options = options or ClusterOptions()
        self._transport = transport
        self.admin = self._client("kcm-sandbox")
        """A client for other users of the cluster."""
        kubelet = self._client("kubelet")
        self._informers = Informers(kubelet, clock, rng, in_process=True)
        names = EventNames(clock, EVENT_OFFSET_NS)
        self.events = Events(kubelet, names, clock)
        given = self._options
        means = Means(kubelet, self.events, clock, rng, given.renewals)
        self.nodes = Nodes(means, self._informers, given.heartbeat_s, ranged=given.ranged, rules=given.rules)
        scheduler = self._client("kube-scheduler")
        driver = self._client("csi-driver")
        self.storage = StorageDriver(driver, self._informers, self.events, clock)
        self.scheduler = Scheduler(scheduler, listers(self._informers), names, clock, rng)

    async def run(self) -> None:
        """Simulate until cancelled."""
        tasks = Tasks(_failed)
        try:
            self._informers.start(tasks)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._ensure_nodes(), name="first nodes")
                group.create_task(self.nodes.run(), name="nodes")
                group.create_task(self.scheduler.run(), name="scheduler")
                group.create_task(self.storage.run(), name="storage")
                group.create_task(self.events.run(), name="events")
        finally:
            await tasks.stop()

    async def _ensure_nodes(self) -> None:
        while True:
            try:
                await self.nodes.ensure(self._options.nodes)
                return
            except RequestError as error:
                log.warning("Cannot register nodes", extra={"fields": {"err": str(error)}})
                await self._clock.sleep(RETRY_S)

    def _client(self, component: str) -> Client:
        agent = f"{component}/{GIT_VERSION} (linux/amd64) kubernetes/kcm"
        return Client(self._transport, limiter=Unlimited(), user_agent=agent, clock=self._clock)


def _failed(name: str, error: BaseException) -> None:
    log.error("Task ended", extra={"fields": {"task": name, "err": repr(error)}})
