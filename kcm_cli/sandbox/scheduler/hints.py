"""Queueing hints: whether a change may make a rejected pod schedulable, according to the plugins that rejected it.

upstream: EventsToRegister and the queueing hints of pkg/scheduler/framework/plugins
"""

from collections.abc import Callable, Mapping

from kcm_cli.api.core import PersistentVolumeClaim
from kcm_cli.api.storage import PersistentVolume, StorageClass
from kcm_cli.machinery.labels import Selector
from kcm_cli.planning.node_affinity import fits
from kcm_cli.planning.quota.devices import IMPLICIT
from kcm_cli.planning.tolerations import NO_EXECUTE, NO_SCHEDULE, untolerated
from kcm_cli.planning.volumes.classes import waits_for_consumer
from kcm_cli.sandbox.requests import PODS, amounts
from kcm_cli.sandbox.scheduler.devices.views import DeviceClass
from kcm_cli.sandbox.scheduler.filters import FIT
from kcm_cli.sandbox.scheduler.podindex import Namespaces, matches_all
from kcm_cli.sandbox.scheduler.podinfo import PodInfo, conflict, selector_of
from kcm_cli.sandbox.scheduler.volume_limits import PLUGIN as LIMITS
from kcm_cli.sandbox.scheduler.volumes import BINDING, RESTRICTIONS, ZONE_LABELS, ZONES, room_of
from kcm_cli.sandbox.storage.views import CsiNode, CsiStorageCapacity
from kcm_cli.sandbox.views import SimulatedNode

Hint = Callable[[PodInfo, frozenset[str]], bool]
"""Whether to look again at a pod that these plugins have refused."""
Offers = Mapping[str, str]
"""Classes of devices by the extended resources that stand for them."""
_MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"


def node_added(node: SimulatedNode, offers: Offers) -> Hint:
    """A node was added."""
    return _any_of(_of_node(None, node, offers))


def node_changed(old: SimulatedNode, new: SimulatedNode, offers: Offers) -> Hint:
    """A node was updated. If it has other taints or is not cordoned any more, it helps pods of all plugins that do not
    watch taints."""
    checks = _of_node(old, new, offers)
    if old.spec.taints != new.spec.taints or (old.spec.unschedulable and not new.spec.unschedulable):
        checks |= {name: lambda info: True for name in checks.keys() - _WATCH_TAINTS}
    return _any_of(checks)


def class_changed(old: DeviceClass | None, new: DeviceClass) -> Hint:
    """A DeviceClass was added or updated. It may provide an extended resource."""
    name = new.spec.extended_resource_name
    offered: set[str] = set()
    if name and (old is None or old.spec.extended_resource_name != name):
        offered.add(name)
    if old is None:
        offered.add(IMPLICIT + new.name)
    return _any_of({FIT: lambda info: not offered.isdisjoint(info.requests)})


def pod_added(came: PodInfo, namespaces: Namespaces) -> Hint:
    """A pod was assigned to a node."""
    return _any_of(
        {
            "PodTopologySpread": lambda info: _is_spread_with(info, came),
            "InterPodAffinity": lambda info: matches_all(info.affinity, came, namespaces),
        }
    )


def pod_relabelled(old: PodInfo, new: PodInfo, namespaces: Namespaces) -> Hint:
    """The labels of an assigned pod changed."""

    def affine(info: PodInfo) -> bool:
        nearer = not matches_all(info.affinity, old, namespaces) and matches_all(info.affinity, new, namespaces)
        return nearer or (
            matches_all(info.anti_affinity, old, namespaces) and not matches_all(info.anti_affinity, new, namespaces)
        )

    return _any_of(
        {"PodTopologySpread": lambda info: _is_counted_otherwise(info, old, new), "InterPodAffinity": affine}
    )


def namespace_relabelled(name: str, old: Mapping[str, str], new: Mapping[str, str]) -> Hint:
    """The labels of a namespace changed, by which terms of affinity select its pods. It helps its own pods, too, which
    the terms of others may have kept away."""

    def selected_otherwise(info: PodInfo) -> bool:
        selectors = (term.namespace_selector for term in (*info.affinity, *info.anti_affinity))
        return any(each.matches(old) != each.matches(new) for each in selectors)

    return _any_of({"InterPodAffinity": lambda info: info.pod.namespace == name or selected_otherwise(info)})


def pod_updated(old: PodInfo, new: PodInfo) -> Hint:
    """The waiting pod itself was updated."""
    relabelled = old.pod.metadata.labels != new.pod.metadata.labels
    tolerates = len(old.pod.spec.tolerations) != len(new.pod.spec.tolerations)
    smaller = any(amount > new.requests.get(name, 0) for name, amount in old.requests.items())
    constraints = new.pod.spec.topology_spread_constraints
    honors = any(item.node_taints_policy == "Honor" for item in constraints if item.when_unsatisfiable == _REQUIRED)
    return _any_of(
        {
            FIT: lambda info: smaller,
            "TaintToleration": lambda info: tolerates,
            "NodeUnschedulable": lambda info: tolerates,
            "InterPodAffinity": lambda info: relabelled,
            "PodTopologySpread": lambda info: _is_counted_otherwise(new, old, new) or (tolerates and honors),
        }
    )


def pod_deleted(deleted: PodInfo, namespaces: Namespaces) -> Hint:
    """An assigned pod was deleted or has ended."""
    return _any_of(
        {
            FIT: lambda info: True,
            "NodePorts": lambda info: any(conflict(port, taken) for port in info.ports for taken in deleted.ports),
            LIMITS: lambda info: bool(deleted.claims),
            RESTRICTIONS: lambda info: (
                info.pod.namespace == deleted.pod.namespace
                and (
                    not set(info.claims).isdisjoint(deleted.claims)
                    or any(disk.conflicts(other) for disk in info.disks for other in deleted.disks)
                )
            ),
            "PodTopologySpread": lambda info: _is_spread_with(info, deleted),
            "InterPodAffinity": lambda info: _kept_apart(info, deleted, namespaces),
        }
    )


def claim_changed(old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> Hint:
    """A PersistentVolumeClaim was added or updated. It helps the pods that use it."""

    def uses(info: PodInfo) -> bool:
        return info.pod.namespace == new.namespace and new.name in info.claims

    plugins = (BINDING, ZONES) if old is not None else (BINDING, ZONES, RESTRICTIONS, LIMITS)
    return _any_of(dict.fromkeys(plugins, uses))


def volume_changed(old: PersistentVolume | None, new: PersistentVolume) -> Hint:
    """A PersistentVolume was added or updated."""
    moved = old is None or any(old.labels.get(label) != new.labels.get(label) for label in ZONE_LABELS)
    return _of_plugins({BINDING: True, ZONES: moved})


def storage_class_changed(old: StorageClass | None, new: StorageClass) -> Hint:
    """A StorageClass was added or updated."""
    elsewhere = old is None or old.allowed_topologies != new.allowed_topologies
    return _of_plugins({BINDING: elsewhere, ZONES: old is None and waits_for_consumer(new)})


def csi_node_changed(old: CsiNode | None, new: CsiNode) -> Hint:
    """A CSINode was added or updated."""
    if old is None:
        return _of_plugins({BINDING: True, LIMITS: True})
    before = _most_volumes(old)
    more = any(count > before.get(name, 0) for name, count in _most_volumes(new).items())
    return _of_plugins({BINDING: old.annotations.get(_MIGRATED) != new.annotations.get(_MIGRATED), LIMITS: more})


def capacity_changed(old: CsiStorageCapacity | None, new: CsiStorageCapacity) -> Hint:
    """A CSIStorageCapacity was added or updated."""
    before, room = room_of(old) if old is not None else None, room_of(new)
    return _of_plugins({BINDING: old is None or (room is not None and (before is None or room > before))})


def volume_detached() -> Hint:
    """A volume was detached from its node."""
    return _any_of(
        {LIMITS: lambda info: any(volume.persistent_volume_claim is not None for volume in info.pod.spec.volumes)}
    )


def _most_volumes(node: CsiNode) -> dict[str, int]:
    """The maximum number of volumes on a node, by driver."""
    found = {driver.name: driver.allocatable for driver in node.spec.drivers}
    return {name: (limit.count or 0) if limit is not None else 0 for name, limit in found.items()}


def _of_plugins(helped: Mapping[str, bool]) -> Hint:
    """The hint of a change that helps all pods that one of these plugins rejected."""
    plugins = {name for name, helps in helped.items() if helps}
    return lambda info, refused_by: not plugins.isdisjoint(refused_by)


def _any_of(checks: Mapping[str, Callable[[PodInfo], bool]]) -> Hint:
    return lambda info, plugins: any(checks[name](info) for name in plugins if name in checks)


# -- nodes

_NodeCheck = Callable[[PodInfo, SimulatedNode | None, SimulatedNode], bool]
_REPELLING = (NO_SCHEDULE, NO_EXECUTE)
_REQUIRED = "DoNotSchedule"


def _of_node(old: SimulatedNode | None, new: SimulatedNode, offers: Offers) -> dict[str, Callable[[PodInfo], bool]]:
    checks = {name: _bind_node(check, old, new) for name, check in _NODE.items()}
    return {FIT: lambda info: _fits_now(info, old, new, offers), **checks}


def _bind_node(check: _NodeCheck, old: SimulatedNode | None, new: SimulatedNode) -> Callable[[PodInfo], bool]:
    return lambda info: check(info, old, new)


def _fits_now(info: PodInfo, old: SimulatedNode | None, new: SimulatedNode, offers: Offers) -> bool:
    """Whether the pod would fit on the empty node, which has more of a requested resource than before, or may have
    devices for it."""
    room = amounts(new.status.allocatable)
    asked = {**{name: amount for name, amount in info.requests.items() if amount > 0}, PODS: 1}
    devices = {name for name in asked if name in offers and not room.get(name)}
    if any(amount > room.get(name, 0) for name, amount in asked.items() if name not in devices):
        return False
    before = amounts(old.status.allocatable) if old is not None else {}
    return old is None or bool(devices) or any(room[name] > before.get(name, 0) for name in asked)


def _becomes(holds: Callable[[PodInfo, SimulatedNode], bool]) -> _NodeCheck:
    """A check that something is true of the node and was not before."""
    return lambda info, old, new: holds(info, new) and (old is None or not holds(info, old))


def _is_affine(info: PodInfo, node: SimulatedNode) -> bool:
    return fits(node.name, node.labels, info.pod.spec.node_selector, info.pod.spec.affinity)


def _is_tolerated(info: PodInfo, node: SimulatedNode) -> bool:
    return untolerated(node.spec.taints, info.pod.spec.tolerations, _REPELLING) is None


def _is_relabelled(info: PodInfo, old: SimulatedNode | None, new: SimulatedNode) -> bool:
    return old is None or old.labels != new.labels


def _is_spread_over(info: PodInfo, old: SimulatedNode | None, new: SimulatedNode) -> bool:
    keys = [item.topology_key for item in info.pod.spec.topology_spread_constraints]
    after = [new.labels.get(key) for key in keys]
    if None in after:
        return False
    return old is None or old.spec.taints != new.spec.taints or [old.labels.get(key) for key in keys] != after


_NODE: Mapping[str, _NodeCheck] = {
    "NodeAffinity": _becomes(_is_affine),
    "TaintToleration": _becomes(_is_tolerated),
    "NodeUnschedulable": _becomes(lambda info, node: not node.spec.unschedulable),
    "NodePorts": lambda info, old, new: old is None,
    "NodeDeclaredFeatures": lambda info, old, new: (
        old is None or old.status.declared_features != new.status.declared_features
    ),
    "PodTopologySpread": _is_spread_over,
    "InterPodAffinity": _is_relabelled,
    "VolumeRestrictions": lambda info, old, new: old is None,
    "VolumeBinding": _is_relabelled,
    "VolumeZone": _is_relabelled,
    "DynamicResources": lambda info, old, new: (
        old is None or old.labels != new.labels or old.status.allocatable != new.status.allocatable
    ),
}

_WATCH_TAINTS = frozenset(("TaintToleration", "NodeUnschedulable", "PodTopologySpread"))


# -- pods


def _is_spread_with(info: PodInfo, other: PodInfo) -> bool:
    """Whether the other pod counts for one of the pod's constraints."""
    if info.pod.namespace != other.pod.namespace:
        return False
    return any(each.matches(other.pod.labels) for each in _spread_selectors(info))


def _is_counted_otherwise(info: PodInfo, old: PodInfo, new: PodInfo) -> bool:
    """Whether the other pod started or stopped to count for one of the pod's constraints."""
    if info.pod.namespace != new.pod.namespace:
        return False
    return any(each.matches(old.pod.labels) != each.matches(new.pod.labels) for each in _spread_selectors(info))


def _spread_selectors(info: PodInfo) -> list[Selector]:
    given = info.pod.spec.topology_spread_constraints
    return [selector_of(item.label_selector) for item in given if item.when_unsatisfiable == _REQUIRED]


def _kept_apart(info: PodInfo, deleted: PodInfo, namespaces: Namespaces) -> bool:
    """Whether one of the two pods has anti-affinity to the other, by all terms."""
    return matches_all(info.anti_affinity, deleted, namespaces) or matches_all(deleted.anti_affinity, info, namespaces)
