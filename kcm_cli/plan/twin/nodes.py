"""The twin's nodes: kubelets, whether they run, and their Leases.

Node objects stay as they are in the cluster: allocatable, taints, labels, conditions. A node that was not ready has no
kubelet. A node that is created in the twin has one at once.
"""

import asyncio
from collections.abc import Callable
from functools import partial

from kcm_cli.api.resource import GVR
from kcm_cli.api.well_known import LEASE_NAMESPACE
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_map, nested_str
from kcm_cli.machinery.times import format_micro_time
from kcm_cli.plan.twin.pods import Learned
from kcm_cli.sandbox.apiserver.store import Event, Store
from kcm_cli.sandbox.means import Means
from kcm_cli.sandbox.networks import MOST_NODES
from kcm_cli.sandbox.nodes import shape
from kcm_cli.sandbox.nodes.agents import Agent
from kcm_cli.sandbox.nodes.claims import Claims
from kcm_cli.sandbox.nodes.images import Images
from kcm_cli.sandbox.nodes.kubelet import Kubelets
from kcm_cli.sandbox.nodes.machine import Hold
from kcm_cli.sandbox.nodes.mounts import Mounts
from kcm_cli.sandbox.nodes.references import CONFIG_MAP, SECRET, object_id
from kcm_cli.sandbox.views import CONFIG_MAP_KEYS, NODES, SECRET_KEYS, SimulatedNode, SimulatedPod

LEASES = GVR("coordination.k8s.io", "v1", "leases")
HEARTBEAT_S = 10.0
_AT_ONCE = 100


class Obstacles:
    """Implements ``nodes.kubelet.Obstructions``: what was learned, and the claims of new pods. attaches: whether
    volumes are attached in the twin, so that pods can wait for it."""

    def __init__(self, learned: Learned, claims: Claims, *, attaches: bool) -> None:
        self._learned, self._claims, self._attaches = learned, claims, attaches
        self.of_containers, self.remarks = learned.of_containers, learned.remarks

    async def synced(self) -> None:
        """Wait until the caches are filled."""
        await self._claims.synced()

    def of_volumes(self, pod: SimulatedPod) -> Hold | None:
        """The obstacle of a new pod: ConfigMaps or Secrets that do not exist, a volume that is not on its node."""
        found = self._learned.of_volumes(pod)
        if found is not None or not self._attaches or self._learned.has_begun(pod):
            return found
        return self._claims.unattached(pod)


class TwinNodes:
    """The nodes of a twin, whose pods behave as was learned. heartbeat_s: see ``TwinAgents``. attaches: see
    ``Obstacles``."""

    def __init__(self, means: Means, store: Store, learned: Learned, heartbeat_s: float, *, attaches: bool) -> None:
        self.agents = TwinAgents(means, store, heartbeat_s)
        claims = Claims(means.informers, self._object_changed, self._attached)
        self._kubelets = Kubelets(means, self.agents, learned, Obstacles(learned, claims, attaches=attaches))
        self._mounts = Mounts(means, self.agents)
        store.subscribe(CONFIG_MAP_KEYS.gvr, partial(self._referred, CONFIG_MAP))
        store.subscribe(SECRET_KEYS.gvr, partial(self._referred, SECRET))

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.agents.run(), name="heartbeats")
            group.create_task(self._kubelets.run(), name="kubelets")
            group.create_task(self._mounts.run(), name="mounts")

    def _object_changed(self, which: str) -> None:
        self._kubelets.object_changed(which)

    def _attached(self, node: str) -> None:
        self._kubelets.volumes_attached(node)

    def _referred(self, kind: str, event: Event) -> None:
        """Look again at pods that wait for a ConfigMap or Secret."""
        self._kubelets.object_changed(object_id(kind, event.stored.key))


class TwinAgents:
    """Implements ``nodes.eviction.Alive``.

    heartbeat_s: the interval between renewals of Leases. They are written to the store directly.
    """

    def __init__(self, means: Means, store: Store, heartbeat_s: float) -> None:
        self._store = store
        self._clock = means.clock
        self._heartbeat_s = heartbeat_s
        self._agents: dict[str, Agent] = {}
        self._listeners: list[Callable[[str], None]] = []
        nodes = means.informers.get(NODES)
        nodes.listen(on_add=self._seen, on_update=lambda _, node: self._changed(node), on_delete=self._removed)

    def listen(self, changed: Callable[[str], None]) -> None:
        self._listeners.append(changed)

    def alive(self, name: str) -> Agent | None:
        agent = self._agents.get(name)
        return agent if agent is not None and not agent.failed else None

    def fail(self, name: str) -> None:
        """Stop a node's kubelet, with a recent last heartbeat."""
        agent = self._agents.get(name)
        if agent is not None and not agent.failed:
            if self._heartbeat_s > HEARTBEAT_S:
                self._renew(agent)
            agent.failed = True

    async def run(self) -> None:
        """Send heartbeats until cancelled."""
        while True:
            for number, agent in enumerate(list(self._agents.values())):
                if not agent.failed:
                    self._renew(agent)
                if number % _AT_ONCE == _AT_ONCE - 1:
                    await self._clock.sleep(0)
            await self._clock.sleep(self._heartbeat_s)

    def _seen(self, node: SimulatedNode) -> None:
        number = len(self._agents) + 1
        network = shape.network_of(node.spec.pod_cidrs, number % MOST_NODES)
        agent = Agent(node.name, number % MOST_NODES, network, Images(node.status.images))
        agent.host_ip = next((a.address for a in node.status.addresses if a.type == "InternalIP"), agent.host_ip)
        agent.failed = any(c.type == "Ready" and c.status != "True" for c in node.status.conditions)
        self._agents[node.name] = agent
        self._notify(node.name)

    def _changed(self, node: SimulatedNode) -> None:
        agent = self._agents.get(node.name)
        network = shape.network_of(node.spec.pod_cidrs, agent.number) if agent is not None else ""
        if agent is not None and node.spec.pod_cidrs and network != agent.network:
            agent.use(network)

    def _removed(self, node: SimulatedNode) -> None:
        self._agents.pop(node.name, None)
        self._notify(node.name)

    def _notify(self, name: str) -> None:
        for changed in self._listeners:
            changed(name)

    def _renew(self, agent: Agent) -> None:
        """Write the Lease, without await."""
        now = self._clock.now()
        stored = self._store.get(LEASES, LEASE_NAMESPACE, agent.name)
        if stored is None:
            node = self._store.get(GVR("", "v1", "nodes"), "", agent.name)
            if node is None:
                return
            doc = shape.lease_doc(agent.name, nested_str(node.doc, "metadata", "uid"), format_micro_time(now))
            nested_map(doc, "metadata")["uid"] = f"lease-{agent.name}"
            self._store.create(LEASES, LEASE_NAMESPACE, agent.name, doc)
            return
        lease: Doc = stored.copy()
        renewed: Doc = {**nested_map(lease, "spec"), "renewTime": format_micro_time(now)}
        self._store.update(LEASES, LEASE_NAMESPACE, agent.name, {**lease, "spec": renewed})
