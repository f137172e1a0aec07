"""A twin: an API server with the objects of a snapshot, with kubelets, scheduler and controllers.

All of them share one process and are connected in process: nothing in a twin can open a connection.

It runs on virtual time that begins when the snapshot was taken. The same snapshot and seed have the same result.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from kcm_cli.api.well_known import AUTHENTICATED, MASTERS, ROOT_CA
from kcm_cli.component.clock import LoopClock
from kcm_cli.component.surroundings import Host, ServerCA
from kcm_cli.engine.context import Common
from kcm_cli.engine.controller import CUSTOM
from kcm_cli.manager.config import Config, load
from kcm_cli.manager.controller_map import all_controllers
from kcm_cli.manager.controllers import RunContext, run_controllers
from kcm_cli.manager.selection import choose
from kcm_cli.plan.kinds import CONFIG_MAPS, DEFINITIONS
from kcm_cli.plan.snapshot import Snapshot
from kcm_cli.plan.twin.existence import Existence
from kcm_cli.plan.twin.loading import Loaded
from kcm_cli.plan.twin.metrics import AUTOSCALERS, Discoverable, FrozenMetrics
from kcm_cli.plan.twin.nodes import HEARTBEAT_S, TwinAgents
from kcm_cli.plan.twin.pods import Learned
from kcm_cli.plan.twin.storage import TwinStorage
from kcm_cli.plan.twin.writes import Watched, Written
from kcm_cli.rest.builder import ClientSettings
from kcm_cli.rest.client import Client
from kcm_cli.rest.discovery import discover
from kcm_cli.rest.ratelimit import Limiter, Unlimited, limiter
from kcm_cli.rest.served import ServedResource
from kcm_cli.runtime.events.counted import EventNames
from kcm_cli.runtime.informers import Informers
from kcm_cli.runtime.tasks import Tasks
from kcm_cli.sandbox.apiserver.schema import Target as TypeName
from kcm_cli.sandbox.apiserver.schema.model import Node
from kcm_cli.sandbox.apiserver.security.certificates import Certificates, Keys
from kcm_cli.sandbox.apiserver.settings import Settings
from kcm_cli.sandbox.apiserver.store import Event, Store
from kcm_cli.sandbox.apiserver.types import User
from kcm_cli.sandbox.apiserver.webhooks import NoCalls
from kcm_cli.sandbox.assembly import assemble
from kcm_cli.sandbox.cluster import EVENT_OFFSET_NS
from kcm_cli.sandbox.events import Events
from kcm_cli.sandbox.nodes.kubelet import Kubelets
from kcm_cli.sandbox.nodes.mounts import Mounts
from kcm_cli.sandbox.scheduler.listers import listers
from kcm_cli.sandbox.scheduler.scheduler import Scheduler
from kcm_cli.sandbox.transport import InProcessTransport
from kcm_cli.sandbox.views import CONFIG_MAP_KEYS, NODES, PODS, SECRET_KEYS

USER = "kubectl"
KUBELET, SCHEDULER, STORAGE = "kubelet", "kube-scheduler", "csi"
SIMULATED = frozenset((KUBELET, SCHEDULER, STORAGE, USER))
"""The clients that are no controllers."""
LATENCY_S = 0.002, 0.006
"""How long a request takes, between the two: in no time at all, several steps of a controller look like one."""
START_S, MARGIN_S = 5.0, 2.0
"""How much of a twin's time its caches are given to fill, and what its autoscalers' first look may take."""
_CA_KEY = "ca.crt"
_SETTINGS = Settings(ratchets=True)
_GROUPS = (MASTERS, AUTHENTICATED)


class Twin:
    """A twin. Use it with ``async with``; time passes while its user sleeps on ``clock``."""

    def __init__(self, snapshot: Snapshot, config: Config, seed: int, unpullable: Sequence[str] = ()) -> None:
        """unpullable: images whose pull fails."""
        self.snapshot = snapshot
        self.clock = LoopClock(snapshot.taken_at)
        self.rng = random.Random(seed)
        self.loaded = Loaded(snapshot)
        self.store = Store(self.loaded)
        latency = self._rng()
        self.written = Written(self.clock.monotonic, lambda: self.clock.sleep(latency.uniform(*LATENCY_S)))
        self.existence = Existence(snapshot, self.store)
        self.learned = Learned(snapshot, unpullable, self.existence)
        self.metrics = FrozenMetrics(self.store, self.clock)
        self._config = config
        certificates = _certificates(snapshot.taken_at)
        self._api = assemble(
            self.store,
            self.clock,
            self._rng(),
            certificates,
            address="127.0.0.1:6443",
            settings=_SETTINGS,
            calls=NoCalls(),
        )
        for name, version in self.metrics.groups:
            self._api.aggregate(Discoverable(name, version))
        self.client = self._client(USER, USER)
        kubelet = self._client(KUBELET, KUBELET)
        self._informers = Informers(kubelet, self.clock, self._rng())
        self._names = EventNames(self.clock, EVENT_OFFSET_NS)
        self._events = Events(kubelet, self._names, self.clock)
        period_s = config.component.kube_cloud_shared.node_monitor_period_s
        silence_s = config.component.controllers.node_lifecycle.monitor_grace_period_s - period_s - MARGIN_S
        nodes = self._informers.get(NODES)
        self.agents = TwinAgents(nodes, self.store, self.clock, max(HEARTBEAT_S, silence_s))
        self._kubelets = Kubelets(
            kubelet, self._informers.get(PODS), nodes, self._events, self.clock, behaviour=self.learned
        )
        self._mounts = Mounts(kubelet, self._informers, self.clock, lambda name: self.agents.alive(name) is not None)
        self.agents.kubelets, self.agents.mounts, self._kubelets.agents = self._kubelets, self._mounts, self.agents
        self._kubelets.obstacles = self.learned
        for resource in (CONFIG_MAP_KEYS, SECRET_KEYS):
            self.store.subscribe(resource.gvr, self._referred)
        self._storage = TwinStorage(self._client(STORAGE, STORAGE), self._informers, self.clock)
        self._scheduler = Scheduler(
            self._client(SCHEDULER, SCHEDULER), listers(self._informers), self._names, self.clock, self._rng()
        )
        self._tasks: Tasks | None = None
        self._quiet = contextlib.ExitStack()
        self._stop = asyncio.Event()
        self.failed: list[tuple[str, BaseException]] = []

    def _referred(self, event: Event) -> None:
        """Look again at pods that wait for a ConfigMap or Secret."""
        self._kubelets.namespace_changed(event.stored.namespace)

    async def settle(self) -> None:
        """Wait until the caches have synced and autoscalers have synced once, so that their history precedes any
        change."""
        looks_s = self._config.component.controllers.horizontal_pod_autoscaler.sync_period_s
        has_any = bool(self.store.list(AUTOSCALERS))
        await self.clock.sleep(max(START_S, looks_s + MARGIN_S) if has_any else START_S)

    def type_of(self, served: ServedResource) -> Node | None:
        """The type of a built-in kind; None for a custom one."""
        gvr = served.gvr
        target = TypeName(gvr.group, gvr.version, served.kind)
        schemas = self._api.core.schemas
        return None if schemas.is_custom(target) else schemas.node(target)

    async def __aenter__(self) -> "Twin":
        self._quiet.enter_context(_quiet())
        self.clock.now()
        self._tasks = tasks = Tasks(lambda name, error: self.failed.append((name, error)))
        self._informers.start(tasks)
        for name, work in (
            ("heartbeats", self.agents.run()),
            ("kubelets", self._kubelets.run()),
            ("mounts", self._mounts.run()),
            ("storage", self._storage.run()),
            ("scheduler", self._scheduler.run()),
            ("events", self._events.run()),
        ):
            tasks.start(name, work)
        tasks.start("controllers", run_controllers(await self._controllers(), self._stop))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stop.set()
        try:
            if self._tasks is not None:
                with contextlib.suppress(asyncio.CancelledError):
                    await self._tasks.stop()
        finally:
            self._quiet.close()

    async def _controllers(self) -> RunContext:
        config = self._config
        discovery = await discover(self.client)
        served = frozenset(f"{one.gvr.group_version}/{one.gvr.plural}" for one in discovery.all())
        chosen, left_out = (
            choose(all_controllers(), config.controllers, config.gates, served),
            lacking(self.snapshot, config),
        )
        clients = _Clients(self)
        generic = config.component.generic
        return RunContext(
            chosen=tuple(one for one in chosen if one.name not in left_out),
            clients=clients,
            root_clients=clients,
            common=Common(
                clock=self.clock,
                rng=self._rng(),
                gates=config.gates,
                configs={
                    **config.by_type(),
                    Host: Host(simulated_nodes=True),
                    ServerCA: ServerCA(_root_ca(self.snapshot)),
                },
                served=served,
            ),
            start_interval_s=generic.controller_start_interval_s,
            resync_s=generic.min_resync_period_s,
        )

    def controller_limit(self) -> Limiter:
        """The rate limit of one controller, by --kube-api-qps."""
        connection = self._config.component.generic.client_connection
        return Unlimited() if connection.qps < 0 else limiter(connection.qps, connection.burst)

    def controller_client(self, name: str) -> Client:
        """A client of the twin with the name and the rate limit of a controller."""
        return self._client(name, ClientSettings().user_agent(name), self.controller_limit(), measured=True)

    def _client(self, name: str, agent: str, limit: Limiter | None = None, *, measured: bool = False) -> Client:
        transport = InProcessTransport(self._api, User(f"system:{name}", groups=_GROUPS))
        watched = Watched(transport, name, self.written, self.metrics if measured else None)
        return Client(watched, limiter=limit or Unlimited(), user_agent=agent, clock=self.clock)

    def _rng(self) -> random.Random:
        return random.Random(self.rng.random())


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Drops the log of the controllers in a twin: what they meet is the twin's, and not the user's."""
    logger = logging.getLogger("kcm_cli")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


class _Clients:
    """A client for each controller, so that writes can be attributed."""

    def __init__(self, twin: Twin) -> None:
        self._twin = twin
        self._clients: dict[str, Client] = {}

    def client(self, name: str) -> Client:
        client = self._clients.get(name)
        if client is None:
            client = self._clients[name] = self._twin.controller_client(name)
        return client


def configuration(flags: Sequence[str]) -> Config:
    """The manager's configuration for a twin. Raises ConfigError."""
    return load([*flags, "--leader-elect=false"])


def lacking(snapshot: Snapshot, config: Config) -> Mapping[str, tuple[str, ...]]:
    """The controllers that would write what they do not write on the cluster, with the kinds that they need and the
    snapshot lacks."""
    there = {gvr.group_resource for gvr in snapshot.collections}
    if DEFINITIONS.key in there and all(item.name in there for item in snapshot.items(DEFINITIONS.gvr)):
        there.add(CUSTOM)
    if not _root_ca(snapshot):
        there.discard(CONFIG_MAPS.key)
    common = Common(
        clock=LoopClock(snapshot.taken_at), rng=random.Random(), gates=config.gates, configs=config.by_type()
    )
    runs = (one for one in all_controllers() if one.name in config.controllers and not one.cloud_only)
    needs = {one.name: one.load().needed_under(common) for one in runs if all(map(config.gates.enabled, one.gates))}
    found = {name: tuple(kind for kind in kinds if kind not in there) for name, kinds in needs.items()}
    return {name: kinds for name, kinds in found.items() if kinds}


def _root_ca(snapshot: Snapshot) -> bytes:
    """The root CA that the cluster publishes."""
    for item in snapshot.items(CONFIG_MAPS.gvr):
        if item.name == ROOT_CA:
            data = item.doc.get("data")
            if isinstance(data, dict) and isinstance(data.get(_CA_KEY), str):
                return str(data[_CA_KEY]).encode()
    return b""


@cache
def _certificates(now: datetime) -> Certificates:
    """The server's certificates, which are required, but not used in a twin."""
    key = ec.generate_private_key(ec.SECP256R1())  # an RSA key would take 0.1 s
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    return Certificates.load(None, now, keys=Keys(service_account=pem))
