"""Which workloads are not ready, and why: kept up to date by each write, so that reading costs little.

upstream: none
"""

from collections import Counter

import msgspec

from kcm_cli.api.core import Condition
from kcm_cli.api.resource import GVR
from kcm_cli.machinery import codec
from kcm_cli.machinery.meta import SlimObject, View, controller_of, split_key
from kcm_cli.sandbox.apiserver.store import Event, Store, Stored
from kcm_cli.sandbox.status.state import Workload

PODS = GVR("", "v1", "pods")
_APPS = ("deployments", "replicasets", "statefulsets", "daemonsets")
WORKLOADS = {**{plural: GVR("apps", "v1", plural) for plural in _APPS}, "jobs": GVR("batch", "v1", "jobs")}
MOST = 50
"""Workloads that are shown at most."""
_LONGEST = 200
_KINDS = frozenset(("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job"))
_QUIET = frozenset(("", "ContainerCreating", "PodInitializing"))
_BAD = frozenset((("ReplicaFailure", "True"), ("Progressing", "False"), ("Failed", "True")))
Place = tuple[str, str]
"""The kind and key of an object."""


class _Waiting(View, frozen=True, gc=False):
    reason: str = ""
    message: str = ""


class _ContainerState(View, frozen=True, gc=False):
    waiting: _Waiting | None = None


class _Container(View, frozen=True, gc=False):
    state: _ContainerState = _ContainerState()


class _PodStatus(View, frozen=True, gc=False):
    phase: str = ""
    reason: str = ""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[_Container, ...] = ()
    init_container_statuses: tuple[_Container, ...] = ()


class Pod(SlimObject, frozen=True, gc=False, kw_only=True):
    """What the view shows of a pod."""

    status: _PodStatus = _PodStatus()


class _Spec(View, frozen=True, gc=False):
    replicas: int | None = None
    suspend: bool = False


class _Status(View, frozen=True, gc=False):
    ready_replicas: int = 0
    number_ready: int = 0
    desired_number_scheduled: int = 0
    active: int = 0
    ready: int = 0
    conditions: tuple[Condition, ...] = ()


class _Workload(SlimObject, frozen=True, gc=False, kw_only=True):
    kind: str = ""
    spec: _Spec = _Spec()
    status: _Status = _Status()


class _Unready(msgspec.Struct, frozen=True):
    """How many pods of a workload are ready, and wanted. why: what its own conditions say."""

    ready: int
    wanted: int
    why: str


class Workloads:
    """Those of a store; ``pod`` is called with each write of a pod."""

    def __init__(self, store: Store) -> None:
        self._unready: dict[Place, _Unready] = {}
        self._parts: dict[Place, set[Place]] = {}
        """ReplicaSets by their Deployment."""
        self._whole: dict[Place, Place] = {}
        self._troubles: dict[Place, dict[str, str]] = {}
        """What keeps pods from being ready, by their owner and their key."""
        self._owner: dict[str, Place] = {}
        for gvr in WORKLOADS.values():
            for stored in store.scan(gvr):
                self._take(stored)
            store.subscribe(gvr, self._seen)

    def pod(self, key: str, pod: Pod | None) -> None:
        """A pod was written; None: it was deleted."""
        before = self._owner.pop(key, None)
        if before is not None:
            held = self._troubles[before]
            del held[key]
            if not held:
                del self._troubles[before]
        trouble = trouble_of(pod) if pod is not None else ""
        if pod is not None and trouble:
            owner = _controller(pod) or ("Pod", key)
            self._owner[key] = owner
            self._troubles.setdefault(owner, {})[key] = trouble

    @property
    def unready(self) -> tuple[Workload, ...]:
        """The workloads that are not ready: those first of which it is known what keeps them, and of these the ones
        that lack most. Pods of no workload are shown themselves."""
        found = [self._shown(place, one) for place, one in self._unready.items() if place not in self._whole]
        found += [
            Workload("Pod", *split_key(key), 0, 1, why)
            for (kind, _), troubles in self._troubles.items()
            if kind not in _KINDS
            for key, why in troubles.items()
        ]
        found.sort(key=lambda one: (not one.why, one.ready - one.wanted, one.namespace, one.name))
        return tuple(found[:MOST])

    def _shown(self, place: Place, one: _Unready) -> Workload:
        return Workload(place[0], *split_key(place[1]), one.ready, one.wanted, one.why or self._why(place))

    def _why(self, place: Place) -> str:
        """What most of its pods say, and one of them, which is what a narrow terminal leaves out."""
        owners = (place, *self._parts.get(place, ()))
        troubles = {key: why for owner in owners for key, why in self._troubles.get(owner, {}).items()}
        if not troubles:
            return ""
        why, count = Counter(troubles.values()).most_common(1)[0]
        name = next(key for key, text in troubles.items() if text == why).rpartition("/")[2]
        return f"{why} ({name})" if count == 1 else f"{why} ({name} and {count - 1} more)"

    def _seen(self, event: Event) -> None:
        if event.type != "DELETED":
            self._take(event.stored)
            return
        place = _read(event.stored).kind, event.stored.key
        self._unready.pop(place, None)
        self._belongs(place, None)

    def _take(self, stored: Stored) -> None:
        found = _read(stored)
        place = found.kind, stored.key
        owner = _controller(found)
        self._belongs(place, owner if owner is not None and owner[0] == "Deployment" else None)
        unready = _unready(found)
        if unready is None or found.deleting:
            self._unready.pop(place, None)
        else:
            self._unready[place] = unready

    def _belongs(self, place: Place, whole: Place | None) -> None:
        """A ReplicaSet belongs to this Deployment from now on; None: to none."""
        before = self._whole.pop(place, None)
        if before is not None:
            parts = self._parts[before]
            parts.discard(place)
            if not parts:
                del self._parts[before]
        if whole is not None:
            self._whole[place] = whole
            self._parts.setdefault(whole, set()).add(place)


def trouble_of(pod: Pod) -> str:
    """What keeps a pod from being ready; empty if it says nothing, as a pod that starts."""
    status = pod.status
    if pod.deleting or status.phase in ("Succeeded", "Failed"):
        return ""
    for condition in status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            return _text(condition.reason, condition.message)
    for container in (*status.init_container_statuses, *status.container_statuses):
        waiting = container.state.waiting
        if waiting is not None and waiting.reason not in _QUIET:
            return _text(waiting.reason, waiting.message)
    return ""


def _unready(found: _Workload) -> _Unready | None:
    """None if it is ready, or cannot be read."""
    status = found.status
    if not found.kind:
        return None
    if found.kind == "DaemonSet":
        ready, wanted = status.number_ready, status.desired_number_scheduled
    elif found.kind == "Job":
        ready, wanted = status.ready, 0 if found.spec.suspend else status.active
    else:
        ready, wanted = status.ready_replicas, 1 if found.spec.replicas is None else found.spec.replicas
    bad = next((one for one in status.conditions if (one.type, one.status) in _BAD), None)
    if ready >= wanted and (bad is None or found.kind == "Job"):
        return None
    return _Unready(ready, wanted, _text(bad.reason, bad.message) if bad is not None else "")


def _controller(obj: SlimObject) -> Place | None:
    owner = controller_of(obj)
    return (owner.kind, f"{obj.namespace}/{owner.name}") if owner is not None else None


def _text(reason: str, message: str) -> str:
    text = f"{reason}: {message}" if reason and message else reason or message
    return " ".join(text[: 2 * _LONGEST].split())[:_LONGEST]


def _read(stored: Stored) -> _Workload:
    """A view of a stored object, or an empty one if it cannot be decoded: no write may fail for that."""
    return codec.decode_or_none(stored.data, _Workload) or _Workload()
