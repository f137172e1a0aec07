"""Selects the pods that belong together with a pod, by its Services and its controller.

upstream: pkg/scheduler/framework/plugins/helper/spread.go
"""

from collections import OrderedDict

import msgspec

from kcm_cli.api.core import Service
from kcm_cli.api.resource import GVR, Resource
from kcm_cli.machinery.labels import EQUALS, NOTHING, LabelSelector, Requirement, Selector, from_labels
from kcm_cli.machinery.meta import Object, View, controller_of
from kcm_cli.runtime.label_indexes import SelectorIndex
from kcm_cli.runtime.store import Store
from kcm_cli.sandbox.scheduler.podinfo import selector_of
from kcm_cli.sandbox.views import SimulatedPod


class MapSelector(View, frozen=True, gc=False):
    selector: dict[str, str] | None = None


class SelectingByMap(Object, frozen=True, gc=False, kw_only=True):
    """A ReplicationController."""

    spec: MapSelector = msgspec.field(default_factory=MapSelector)


class FullSelector(View, frozen=True, gc=False):
    selector: LabelSelector | None = None


class ReplicaOwner(Object, frozen=True, gc=False, kw_only=True):
    """A ReplicaSet or a StatefulSet."""

    spec: FullSelector = msgspec.field(default_factory=FullSelector)


REPLICATION_CONTROLLERS = Resource(GVR("", "v1", "replicationcontrollers"), "ReplicationController", SelectingByMap)
REPLICA_SETS = Resource(GVR("apps", "v1", "replicasets"), "ReplicaSet", ReplicaOwner)
STATEFUL_SETS = Resource(GVR("apps", "v1", "statefulsets"), "StatefulSet", ReplicaOwner)

_KEPT = 1024


class _Compiled(msgspec.Struct, frozen=True):
    """A selector, and what it was made of."""

    wanted: dict[str, str]
    whole: LabelSelector | None
    selector: Selector


class Workloads(msgspec.Struct, frozen=True):
    """The stores of objects that select or own pods. ``compiled``: the latest selectors by owner."""

    services: Store[Service]
    replication_controllers: Store[SelectingByMap]
    replica_sets: Store[ReplicaOwner]
    stateful_sets: Store[ReplicaOwner]
    compiled: OrderedDict[str, _Compiled] = msgspec.field(default_factory=OrderedDict)

    def __post_init__(self) -> None:
        """Index Services as they come: thousands of them are filed in 20 ms, which the first pod would wait for."""
        SelectorIndex.of(self.services, _selector_of)

    def selector_for(self, pod: SimulatedPod) -> Selector:
        """The selector for a pod; empty if nothing selects it."""
        wanted: dict[str, str] = {}
        for service in SelectorIndex.of(self.services, _selector_of).selecting(pod.namespace, pod.labels):
            wanted.update(service.spec.selector or {})
        owner = controller_of(pod)
        key = f"{pod.namespace}/{owner.name}" if owner is not None else ""
        whole: LabelSelector | None = None
        match (owner.api_version, owner.kind) if owner is not None else ("", ""):
            case ("v1", "ReplicationController"):
                controller = self.replication_controllers.get(key)
                wanted.update((controller.spec.selector if controller is not None else None) or {})
            case ("apps/v1", "ReplicaSet"):
                replica_set = self.replica_sets.get(key)
                whole = replica_set.spec.selector if replica_set is not None else None
            case ("apps/v1", "StatefulSet"):
                stateful_set = self.stateful_sets.get(key)
                whole = stateful_set.spec.selector if stateful_set is not None else None
        known = self.compiled.get(key)
        if known is None or known.wanted != wanted or known.whole != whole:
            if len(self.compiled) >= _KEPT:
                self.compiled.popitem(last=False)
            known = self.compiled[key] = _Compiled(wanted, whole, _joined(wanted, whole))
        return known.selector


def _selector_of(service: Service) -> Selector:
    """An empty selector, which selects all pods, adds nothing to the selector for a pod."""
    selector = service.spec.selector
    return from_labels(selector) if selector else NOTHING


def _joined(wanted: dict[str, str], whole: LabelSelector | None) -> Selector:
    more = selector_of(whole).requirements if whole is not None else ()
    return Selector((*(Requirement(key, EQUALS, (value,)) for key, value in sorted(wanted.items())), *more))
