"""The node side of the simulated kubelets: registration, node status and Leases.

A Node with the annotation ``sandbox.kcm.dev/simulated=true`` has a simulated kubelet, whichever client created it. With
``sandbox.kcm.dev/failed=true`` as well, that kubelet has stopped: it sends no heartbeats, and nothing happens to its
pods. Nodes can therefore be added, removed, failed and recovered with any client. ``sandbox.kcm.dev/pressure`` sets
what a node is short of.

upstream: pkg/kubelet/kubelet_node_status.go, staging/src/k8s.io/component-helpers/apimachinery/lease/controller.go
"""

import asyncio
import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec
from msgspec.structs import replace

from kcm_cli.api.core import Taint
from kcm_cli.api.well_known import LEASE_NAMESPACE, NOT_READY
from kcm_cli.machinery import quantity
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.times import format_micro_time, format_time
from kcm_cli.planning.actions import MERGE, STRATEGIC_MERGE, EventRef, Notice
from kcm_cli.planning.conditions import is_true
from kcm_cli.rest.errors import AlreadyExists, Conflict, NotFound
from kcm_cli.sandbox.means import Means
from kcm_cli.sandbox.nodes import HEARTBEAT_S, shape
from kcm_cli.sandbox.nodes.addresses import Addresses
from kcm_cli.sandbox.nodes.admission import Occupancy
from kcm_cli.sandbox.nodes.images import Images
from kcm_cli.sandbox.nodes.rules import Rule
from kcm_cli.sandbox.views import NODE_LEASES, NODES, SimulatedNode
from kcm_cli.sandbox.work import act_for, work_on

STATUS_REPORT_S = 300.0
_MOST_RENEWALS, _LONGEST_HEARTBEAT_S = 100.0, 35.0
"""The maximum rate of renewals of all nodes per second, and the longest interval of a node: its Lease lasts 40 s."""
_FEW = 100
"""Up to this number of nodes, each renewal is a request."""
_MOST_NEW = 100
"""The maximum number of nodes without a report of their kubelets: after a minute without one, a node counts as lost."""
WORKERS = 4
_MOST_FILES = 5000


class Agent:
    """What a simulated kubelet knows of its node."""

    def __init__(self, name: str, number: int, network: str, images: Images) -> None:
        self.name = name
        self.number = number
        self.host_ip = shape.host_address(number)
        self.use(network)
        self.occupancy = Occupancy()
        self.images = images
        self.given: dict[str, str] = {}
        """The resources in its annotation at its last report."""
        self.deferred: set[str] = set()
        """The pods with a deferred resize."""
        self.pressures: tuple[str, ...] = ()
        """Its pressure conditions."""
        self.failed = False
        self.reported_at = float("-inf")
        self.leased = False
        self.started = False
        self.settled: SimulatedNode | None = None
        """The version of the node for which only heartbeats were left to do."""
        self.cordoned = False
        self.files: frozenset[str] = frozenset()
        """The files that pods have written in its folders. Its pods share the object."""

    def keep(self, files: frozenset[str]) -> None:
        """Remember files that pods have created on the node, up to a few thousand."""
        if files and len(self.files) + len(files) <= _MOST_FILES:
            self.files |= files

    def knows(self, node: SimulatedNode) -> SimulatedNode:
        """The node as its kubelet knows it: one that another client has created lacks labels and resources of its
        machine until the kubelet has reported them."""
        if not _resized(self, node):
            return node
        labels = {**shape.labels(self.name, self.number), **node.labels}
        status = replace(node.status, allocatable=_sizes(self, node))
        return replace(node, metadata=replace(node.metadata, labels=labels), status=status)

    def use(self, network: str) -> None:
        """Use this network for the addresses of pods."""
        self.network = network
        self.addresses = Addresses(network, shape.spare_network(self.number))
        self.has_looked = False
        """Whether it has claimed the addresses of pods that its node had before."""


class Renewals(Protocol):
    """Renews Leases more cheaply than with a request."""

    def renew(self, node: str, renew_time: str, now: str) -> bool:
        """Renew a node's Lease, and return whether that succeeded.

        renew_time: as in ``spec.renewTime``. now: as in managedFields.
        """


class NodeOptions(msgspec.Struct, frozen=True):
    """The initial number of nodes, and the interval of their heartbeats.

    ranged: nodes have a pod CIDR from the start; otherwise they wait until a controller has assigned one. rules: rules
    for pods, in addition to those of objects. renewals: renews Leases if there are more than a few nodes; None:
    requests do. static_pods: what kubelets run without being asked (``StaticPods``).
    """

    count: int = 3
    heartbeat_s: float = HEARTBEAT_S
    ranged: bool = True
    rules: Sequence[Rule] = ()
    renewals: Renewals | None = None
    static_pods: Sequence[Doc] = ()


class Agents:
    """The node side of all simulated kubelets."""

    def __init__(self, means: Means, options: NodeOptions) -> None:
        self._heartbeat_s = options.heartbeat_s
        self._ranged = options.ranged
        self._client, self._events = means.kubelet, means.events
        self._clock, self._rng = means.clock, means.rng
        self._renewals = options.renewals
        self._nodes = nodes = means.informers.get(NODES)
        self._listeners: list[Callable[[str], None]] = []
        self._agents: dict[str, Agent] = {}
        self._numbers: set[int] = set()
        self._new: set[str] = set()
        """The nodes that were created here and whose kubelets have not reported yet."""
        self._reported = asyncio.Event()
        self._queue = means.queue("nodes")
        self._leases = means.queue("node leases")
        """Of its own: where the API server answers late, thousands of status reports would let Leases expire."""
        self._record = means.record("kubelet", "Node")
        nodes.listen(on_add=self._seen, on_update=lambda _, node: self._seen(node), on_delete=self._deleted)

    def alive(self, name: str) -> Agent | None:
        """Return a node's agent, or None if it has stopped, waits for the range of its pods, or the node is not
        simulated here."""
        agent = self._agents.get(name)
        return agent if agent is not None and not agent.failed else None

    def listen(self, changed: Callable[[str], None]) -> None:
        """Call a function with the name of each node that came up, failed or recovered."""
        self._listeners.append(changed)

    def free_number(self) -> int:
        """Return the lowest number that no node has."""
        taken = self._numbers | {
            number for node in self._nodes.store if (number := shape.number_of(node.spec.pod_cidr)) is not None
        }
        return next(number for number in range(1, len(taken) + 2) if number not in taken)

    def expect(self, name: str) -> None:
        """Note that a node is being created whose kubelet will report."""
        self._new.add(name)

    def has_reported(self, name: str) -> None:
        """Note that a node has reported, or that there is no need to wait for it."""
        self._new.discard(name)
        self._reported.set()

    async def few_unreported(self) -> None:
        """Wait until nearly all created nodes have reported."""
        while len(self._new) >= _MOST_NEW:
            self._reported.clear()
            await self._reported.wait()

    async def run(self) -> None:
        """Send heartbeats until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(work_on(self._leases, WORKERS, self._beat, self._record))
            group.create_task(work_on(self._queue, WORKERS, self._sync, self._record))

    # -- informer events

    def _seen(self, node: SimulatedNode) -> None:
        if node.annotations.get(shape.SIMULATED) != "true":
            self._deleted(node)
            return
        agent = self._agents.get(node.name)
        if agent is None:
            number = shape.number_of(node.spec.pod_cidr)
            if number is None or number in self._numbers:
                number = self.free_number()
            network = shape.network_of(node.spec.pod_cidrs, number)
            agent = Agent(node.name, number, network, Images(node.status.images))
            agent.failed = True  # until a heartbeat could be sent
            agent.cordoned = node.spec.unschedulable
            self._agents[node.name] = agent
            self._numbers.add(number)
            self._leases.add(node.name)
        network = shape.network_of(node.spec.pod_cidrs, agent.number)
        if node.spec.pod_cidrs and network != agent.network:
            agent.use(network)
        if node.spec.unschedulable != agent.cordoned:
            agent.cordoned = node.spec.unschedulable
            self._emit_status(agent, "NodeNotSchedulable" if agent.cordoned else "NodeSchedulable")
        failed = node.annotations.get(shape.FAILED) == "true" or not (self._ranged or node.spec.pod_cidrs)
        if failed:
            self.has_reported(node.name)
        pressures = shape.pressures(node.annotations)
        if failed != agent.failed or pressures != agent.pressures:
            agent.failed, agent.pressures = failed, pressures
            agent.reported_at = float("-inf")
            self._leases.add(node.name)
            self._notify(node.name)
        elif not failed and (
            _is_not_ready(node) or _resized(agent, node) or any(map(_keeps_pods_away, node.spec.taints))
        ):
            self._queue.add(node.name)

    def _deleted(self, node: SimulatedNode) -> None:
        self.has_reported(node.name)
        agent = self._agents.pop(node.name, None)
        if agent is not None:
            self._numbers.discard(agent.number)
            self._notify(node.name)

    def _notify(self, name: str) -> None:
        for changed in self._listeners:
            changed(name)

    # -- heartbeats

    async def _beat(self, name: str) -> None:
        """Renew a node's Lease, and see whether there is more to do."""
        agent, node = self._agents.get(name), self._nodes.store.get(name)
        if agent is None or node is None or agent.failed:
            return
        act_for(name)
        if not agent.started:
            agent.started = True
            self._emit(agent, "Starting", "Starting kubelet.")
        self._leases.add_after(name, self._pause_s())
        if node is not agent.settled or self._is_due(agent):
            self._queue.add(name)  # also if the Lease cannot be written
        await self._renew(agent, node)

    async def _sync(self, name: str) -> None:
        """Register a node and report its status, where that is due."""
        agent, node = self._agents.get(name), self._nodes.store.get(name)
        if agent is None or node is None or agent.failed:
            return
        act_for(name)
        now, due = self._clock.monotonic(), self._is_due(agent)
        if node is agent.settled and not due:
            return
        registered = await self._register(agent, node)
        if due or _resized(agent, node) or _is_not_ready(node):
            await self._report(agent, node)
            agent.reported_at = now
            self.has_reported(name)
        elif registered:
            agent.settled = node

    def _is_due(self, agent: Agent) -> bool:
        """Whether it is time for a report of the node's status."""
        late = self._clock.monotonic() - agent.reported_at >= STATUS_REPORT_S * self._stretch()
        return late or agent.images.changed

    def _stretch(self) -> float:
        """The factor by which status reports and heartbeats are rarer than a real kubelet's. It grows with the number
        of nodes, up to a limit, so that many nodes share one rate."""
        shared_s = min(_LONGEST_HEARTBEAT_S, len(self._agents) / _MOST_RENEWALS)
        return max(1.0, shared_s / self._heartbeat_s)

    def _interval_s(self) -> float:
        """The seconds between two heartbeats of a node."""
        return self._heartbeat_s * self._stretch()

    def _pause_s(self) -> float:
        """The seconds until a node's next heartbeat.

        With so many nodes that heartbeats are rarer than a kubelet's, they are aligned to whole seconds, so that
        watchers of Leases wake up once for all of them.
        """
        interval_s = self._interval_s()
        pause_s = interval_s * (0.96 + 0.04 * self._rng.random())
        if interval_s <= max(self._heartbeat_s, HEARTBEAT_S):
            return pause_s
        now = self._clock.monotonic()
        return math.floor(now + pause_s) - now

    async def _register(self, agent: Agent, node: SimulatedNode) -> bool:
        """Patch what a Node created by another client lacks. Return whether it lacks nothing."""
        metadata: Doc = {}
        missing = {k: v for k, v in shape.labels(agent.name, agent.number).items() if k not in node.labels}
        if missing:
            metadata["labels"] = missing
        if not node.annotations.keys() >= shape.ANNOTATIONS.keys():
            metadata["annotations"] = shape.ANNOTATIONS
        patch: Doc = {"metadata": metadata} if metadata else {}
        if not node.spec.pod_cidr:
            patch["spec"] = {"podCIDR": agent.network, "podCIDRs": [agent.network]}
        elif not _is_not_ready(node) and any(_keeps_pods_away(taint) for taint in node.spec.taints):
            # The node lifecycle controller does the same; the sandbox has to work without it, too.
            stay: list[object] = [taint for taint in node.spec.taints if not _keeps_pods_away(taint)]
            patch["spec"] = {"taints": stay}
            patch["metadata"] = {**metadata, "resourceVersion": node.metadata.resource_version}
        if patch:
            with contextlib.suppress(Conflict):  # the node lifecycle controller was faster, or an event follows
                await self._client.patch(NODES, "", agent.name, patch, content_type=STRATEGIC_MERGE)
        return not patch

    async def _report(self, agent: Agent, node: SimulatedNode) -> None:
        resources = _sizes(agent, node)
        given = shape.capacity(node.annotations)
        time = format_time(self._clock.now())
        since = {f"{c.type}={c.status}": c.last_transition_time or time for c in node.status.conditions}
        conditions = shape.conditions(agent.pressures, since, time)
        status = shape.status_doc(agent.name, agent.number, resources, conditions)
        images = agent.images.docs()
        allocatable: Doc = dict.fromkeys((node.status.allocatable or {}).keys() - resources.keys())
        gone: Doc = dict.fromkeys(agent.given.keys() - given.keys())
        patch: Doc = {
            "status": {
                **status,
                "capacity": {**resources, **gone},
                "allocatable": {**allocatable, **resources, **gone},
                "images": list(images),
            }
        }
        agent.given = given
        await self._client.patch(NODES, "", agent.name, patch, content_type=STRATEGIC_MERGE, subresource="status")
        agent.images.changed = agent.images.docs() != images
        for condition in (f"{each['type']}={each['status']}" for each in conditions):
            if condition not in since:
                self._emit_status(agent, shape.REASONS[condition])

    def _emit_status(self, agent: Agent, reason: str) -> None:
        self._emit(agent, reason, f"Node {agent.name} status is now: {reason}")

    def _emit(self, agent: Agent, reason: str, message: str) -> None:
        """Emit an Event for a node. A kubelet refers to its node by name only."""
        ref = EventRef("", NODES.kind, "", agent.name, agent.name)
        self._events.kubelet(agent.name, Notice(ref, "Normal", reason, message))

    def _renewed(self, name: str, time: str) -> bool:
        """Renew the Lease without a request, and return whether that was possible."""
        if self._renewals is None or len(self._agents) <= _FEW:
            return False
        return self._renewals.renew(name, time, format_time(self._clock.now()))

    async def _renew(self, agent: Agent, node: SimulatedNode) -> None:
        time = format_micro_time(self._clock.now())
        if agent.leased:
            if self._renewed(agent.name, time):
                return
            patch: Doc = {"spec": {"renewTime": time, "holderIdentity": agent.name}}
            try:
                await self._client.patch(NODE_LEASES, LEASE_NAMESPACE, agent.name, patch, content_type=MERGE)
                return
            except NotFound:
                pass
        try:
            lease = shape.lease_doc(agent.name, node.uid, time)
            await self._client.create(NODE_LEASES, LEASE_NAMESPACE, lease)
        except AlreadyExists:
            self._leases.add(agent.name)
        agent.leased = True


def _keeps_pods_away(taint: Taint) -> bool:
    """Whether this is the taint that a node has until it is ready."""
    return taint.key == NOT_READY and taint.effect == "NoSchedule"


def _sizes(agent: Agent, node: SimulatedNode) -> dict[str, str]:
    """The capacity in the node's annotation, plus resources that other clients have added to it."""
    sizes = shape.capacity(node.annotations)
    for name, size in (node.status.capacity or {}).items():
        if name not in agent.given:
            sizes.setdefault(name, size)
    return sizes


def _resized(agent: Agent, node: SimulatedNode) -> bool:
    """Whether capacity or allocatable in the status differ from ``_sizes``."""
    wanted = _sizes(agent, node)
    return not (_are_same(node.status.capacity, wanted) and _are_same(node.status.allocatable, wanted))


def _are_same(sizes: Mapping[str, str] | None, wanted: Mapping[str, str]) -> bool:
    """Whether the quantities are equal, however they are written."""
    if sizes == wanted:
        return True
    sizes = sizes or {}
    return sizes.keys() == wanted.keys() and all(
        size == wanted[name] or _number(size) == _number(wanted[name]) for name, size in sizes.items()
    )


def _number(size: str) -> tuple[int, int]:
    found = quantity.parse(size)
    return found.amount, found.scale


def _is_not_ready(node: SimulatedNode) -> bool:
    """Whether the node's status lacks the condition Ready=True."""
    return not is_true(node.status.conditions, "Ready")
