"""Counts of pods and nodes, and workloads that are not ready, which each write updates, so that reading them costs the
same in clusters of any size."""

from collections import Counter

from kcm_cli.api.core import Condition, ObjectReference
from kcm_cli.api.resource import GVR
from kcm_cli.component.clock import Clock
from kcm_cli.machinery import codec
from kcm_cli.machinery.meta import View
from kcm_cli.machinery.recent import Bounded
from kcm_cli.sandbox.apiserver.store import Event, Store
from kcm_cli.sandbox.status.state import EventLine, NodeCounts
from kcm_cli.sandbox.status.workloads import PODS, Pod, Workloads

NODES, EVENTS = GVR("", "v1", "nodes"), GVR("", "v1", "events")
KEPT_EVENTS = 50
TERMINATING, UNKNOWN = "Terminating", "Unknown"
_ORDER = ("Running", "Pending", TERMINATING, "Failed", "Succeeded")


class _NodeStatus(View, frozen=True, gc=False):
    conditions: tuple[Condition, ...] = ()


class _Node(View, frozen=True, gc=False):
    status: _NodeStatus = _NodeStatus()


class _Event(View, frozen=True, gc=False):
    type: str = ""
    involved_object: ObjectReference = ObjectReference()
    reason: str = ""
    message: str = ""


class Counts:
    """The counts of a store. Existing objects are counted; existing Events are not shown."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._clock = clock
        self._status_of: dict[str, str] = {}
        self._by_status: Counter[str] = Counter()
        self._ready: dict[str, bool] = {}
        self._events: Bounded[tuple[str, str, str], EventLine] = Bounded(KEPT_EVENTS)
        self.workloads = Workloads(store)
        for stored in store.scan(PODS):
            self._count_pod(stored.key, stored.data)
        for stored in store.scan(NODES):
            self._ready[stored.name] = _is_ready(stored.data)
        store.subscribe(PODS, self._pod)
        store.subscribe(NODES, self._node)
        store.subscribe(EVENTS, self._event)

    @property
    def nodes(self) -> NodeCounts:
        """The number of ready nodes, and the names of the others."""
        count = sum(self._ready.values())
        if count == len(self._ready):
            return NodeCounts(count)
        return NodeCounts(count, tuple(sorted(name for name, ready in self._ready.items() if not ready)))

    @property
    def pods(self) -> tuple[tuple[str, int], ...]:
        """The number of pods in each phase. Those that are being deleted are Terminating."""
        found = {status: count for status, count in self._by_status.items() if count}
        known = [status for status in _ORDER if status in found]
        return tuple((status, found[status]) for status in (*known, *sorted(found.keys() - set(_ORDER))))

    @property
    def events(self) -> tuple[EventLine, ...]:
        """The last Events, newest last. Those with the same reason about one object, about pods of one owner or about
        nodes are aggregated, at the position of the newest."""
        return tuple(self._events.values())

    def _pod(self, event: Event) -> None:
        if event.type != "DELETED":
            self._count_pod(event.stored.key, event.stored.data)
            return
        self.workloads.pod(event.stored.key, None)
        if (status := self._status_of.pop(event.stored.key, None)) is not None:
            self._by_status[status] -= 1

    def _count_pod(self, key: str, data: bytes) -> None:
        pod = codec.decode_or_none(data, Pod) or Pod()
        self.workloads.pod(key, pod)
        status = TERMINATING if pod.deleting else pod.status.phase or UNKNOWN
        before = self._status_of.get(key)
        if status != before:
            self._status_of[key] = status
            self._by_status[status] += 1
            if before is not None:
                self._by_status[before] -= 1

    def _node(self, event: Event) -> None:
        if event.type == "DELETED":
            self._ready.pop(event.stored.name, None)
        else:
            self._ready[event.stored.name] = _is_ready(event.stored.data)

    def _event(self, event: Event) -> None:
        if event.type == "DELETED":
            return
        found, time = codec.decode_or_none(event.stored.data, _Event) or _Event(), self._clock.now().astimezone()
        about = found.involved_object
        many = _many(about)
        key = (about.namespace, many, found.reason)
        before = self._events.get(key)
        one = f"{about.kind.lower()}/{about.name}"
        self._events[key] = EventLine(
            time=f"{time:%H:%M:%S}",
            type=found.type,
            namespace=about.namespace,
            about=one if before is None or before.about == one else many,
            reason=found.reason,
            message=" ".join(found.message.split()),
            count=(before.count if before is not None else 0) + (before is None or event.type == "ADDED"),
        )


def _many(about: ObjectReference) -> str:
    """``kind/name``; for pods and nodes with ``…`` in place of the last part of the name."""
    stem, dash, _ = about.name.rpartition("-")
    name = f"{stem}-…" if dash and about.kind in ("Pod", "Node") else about.name
    return f"{about.kind.lower()}/{name}"


def _is_ready(data: bytes) -> bool:
    conditions = (codec.decode_or_none(data, _Node) or _Node()).status.conditions
    return any(one.type == "Ready" and one.status == "True" for one in conditions)
