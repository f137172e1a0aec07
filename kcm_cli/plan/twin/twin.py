"""A twin: an API server with the objects of a snapshot, with kubelets, scheduler and controllers.

All of them share one process and are connected in process: nothing in a twin can open a connection.

It runs on virtual time that begins when the snapshot was taken. The same snapshot and seed have the same result.
"""

import contextlib
import logging
import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Self

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from msgspec.structs import replace

from kcm_cli.api.well_known import AUTHENTICATED, MASTERS, ROOT_CA
from kcm_cli.cluster.cluster import Cluster
from kcm_cli.cluster.controllers import DISCOVERY, Alone
from kcm_cli.component.clock import LoopClock
from kcm_cli.component.environment import Host, ServerCA
from kcm_cli.engine.context import Common
from kcm_cli.engine.controller import CUSTOM
from kcm_cli.manager.config import Config, load
from kcm_cli.manager.controller_map import all_controllers
from kcm_cli.plan.kinds import CONFIG_MAPS, DEFINITIONS
from kcm_cli.plan.observe import JOBS, REPLICA_SETS
from kcm_cli.plan.snapshot import Snapshot
from kcm_cli.plan.twin.existence import Existence
from kcm_cli.plan.twin.loading import Loaded
from kcm_cli.plan.twin.metrics import AUTOSCALERS, Discoverable, FrozenMetrics
from kcm_cli.plan.twin.nodes import HEARTBEAT_S, TwinAgents, TwinNodes
from kcm_cli.plan.twin.parameters import unread_parameters
from kcm_cli.plan.twin.pods import Learned
from kcm_cli.plan.twin.storage import STORAGE, TwinStorage
from kcm_cli.plan.twin.writes import USER, Watched, Written
from kcm_cli.rest.client import Client
from kcm_cli.rest.served_resources import ServedResource
from kcm_cli.rest.transport import Transport
from kcm_cli.sandbox.apiserver.schema import Target as TypeName
from kcm_cli.sandbox.apiserver.schema.model import Node
from kcm_cli.sandbox.apiserver.security.certificates import Certificates, Keys
from kcm_cli.sandbox.apiserver.settings import Settings
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.types import User
from kcm_cli.sandbox.apiserver.webhooks import NoCalls
from kcm_cli.sandbox.assembly import assemble
from kcm_cli.sandbox.means import Means, split
from kcm_cli.sandbox.transport import InProcessTransport

SIMULATED = frozenset(("kubelet", "kube-scheduler", STORAGE, USER))
"""The clients that are no controllers."""
LATENCY_S = 0.002, 0.006
"""How long a request takes, between the two: in no time at all, several steps of a controller look like one."""
START_S, MARGIN_S = 5.0, 2.0
"""How much of a twin's time its caches are given to fill, and what its autoscalers' first look may take."""
_CA_KEY = "ca.crt"
_ATTACHES = "persistentvolume-attach-detach-controller"
_SETTINGS = Settings(ratchets=True)
_LOOKS_UP = {
    "serviceaccounts": "ServiceAccount",
    "priorityclasses.scheduling.k8s.io": "Priority",
    "runtimeclasses.node.k8s.io": "RuntimeClass",
}
"""The admission plugins that refuse a pod whose object of a kind does not exist."""
_GROUPS = (MASTERS, AUTHENTICATED)


class Twin:
    """A copy of a cluster in memory, on which the controllers run ahead of time. Use it with ``async with``; time
    passes while its user sleeps on ``clock``.

    client: that of the user. failed: the parts that have ended by an error.
    """

    client: Client
    agents: TwinAgents
    failed: list[tuple[str, BaseException]]

    def __init__(self, snapshot: Snapshot, config: Config, seed: int, unpullable: Sequence[str] = ()) -> None:
        """unpullable: images whose pull fails."""
        self.snapshot = snapshot
        self.clock = LoopClock(snapshot.taken_at)
        self.rng = random.Random(seed)
        self.loaded = Loaded(snapshot)
        self.store = Store(self.loaded)
        latency = split(self.rng)
        self.written = Written(self.clock.monotonic, lambda: self.clock.sleep(latency.uniform(*LATENCY_S)))
        self.existence = Existence(snapshot, self.store)
        self.learned = Learned(snapshot, self.clock.monotonic, unpullable, self.existence)
        for gvr in (REPLICA_SETS, JOBS):
            self.store.subscribe(gvr, self.learned.owned)
        self.metrics = FrozenMetrics(self.store, self.clock)
        self._config, self._without = config, frozenset(lacking(snapshot, config))
        self._api = assemble(
            self.store,
            self.clock,
            split(self.rng),
            _certificates(snapshot.taken_at),
            address="127.0.0.1:6443",
            settings=replace(
                _SETTINGS,
                disabled_plugins=frozenset(_unfit(snapshot)),
                disabled_policies=unread_parameters(snapshot),
            ),
            calls=NoCalls(),
        )
        for name, version in self.metrics.groups:
            self._api.aggregate(Discoverable(name, version))
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        self._stack.enter_context(_quiet())
        self.clock.now()
        cluster = Cluster(
            clock=self.clock,
            rng=self.rng,
            connect=self._connect,
            nodes=self._nodes,
            storage=TwinStorage,
            controllers=Alone(
                config=self._config,
                without=self._without,
                served=None,
                environment=(Host(simulated_nodes=True), ServerCA(_root_ca(self.snapshot))),
            ),
        )
        running = await self._stack.enter_async_context(cluster.running())
        self.client, self.agents, self.failed = running.client(USER), running.nodes.agents, running.failed
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()

    def _nodes(self, means: Means) -> TwinNodes:
        period_s = self._config.component.kube_cloud_shared.node_monitor_period_s
        grace_s = self._config.component.controllers.node_lifecycle.monitor_grace_period_s
        heartbeat_s = max(HEARTBEAT_S, grace_s - period_s - MARGIN_S)
        attaches = _ATTACHES in self._config.controllers and _ATTACHES not in self._without
        return TwinNodes(means, self.store, self.learned, heartbeat_s, attaches=attaches)

    def _connect(self, component: str) -> Transport:
        """A connection whose writes are attributed to the component. Controllers see the metrics."""
        transport = InProcessTransport(self._api, User(f"system:{component}", groups=_GROUPS))
        measured = component not in SIMULATED and component != DISCOVERY
        return Watched(transport, component, self.written, self.metrics if measured else None)

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


def _unfit(snapshot: Snapshot) -> Iterator[str]:
    """The admission plugins that would refuse pods for want of objects that were not read."""
    return (plugin for kind, plugin in _LOOKS_UP.items() if kind in snapshot.missing)
