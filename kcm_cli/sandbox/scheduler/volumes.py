"""Filters nodes by a pod's volumes, and finds those to bind or provision first.

upstream: pkg/scheduler/framework/plugins/{volumebinding,volumezone,volumerestrictions}
"""

from collections.abc import Iterable

import msgspec

from kcm_cli.api.core import PersistentVolumeClaim
from kcm_cli.api.storage import PersistentVolume, StorageClass
from kcm_cli.api.well_known import REGION, ZONE
from kcm_cli.machinery import quantity
from kcm_cli.machinery.labels import Selector
from kcm_cli.machinery.meta import controller_of
from kcm_cli.machinery.quantity import Quantity
from kcm_cli.planning.node_affinity import selects
from kcm_cli.planning.volumes.classes import allows, class_of_claim, class_of_volume, waits_for_consumer
from kcm_cli.planning.volumes.matching import capacity, has_access_modes, points_to, requested, satisfies
from kcm_cli.planning.volumes.names import BIND_COMPLETED, NO_PROVISIONER, SELECTED_NODE
from kcm_cli.runtime.store import Store
from kcm_cli.sandbox.scheduler.node_info import NodeInfo
from kcm_cli.sandbox.scheduler.podinfo import PodInfo, selector_of
from kcm_cli.sandbox.scheduler.state import ClusterState
from kcm_cli.sandbox.scheduler.stores import Volumes
from kcm_cli.sandbox.scheduler.verdict import Filter, Refusal
from kcm_cli.sandbox.scheduler.volume_limits import limits_filter
from kcm_cli.sandbox.storage.views import CsiStorageCapacity
from kcm_cli.sandbox.views import SimulatedNode, SimulatedPod

BINDING, ZONES, RESTRICTIONS = "VolumeBinding", "VolumeZone", "VolumeRestrictions"
NOT_THERE = "node(s) didn't match PersistentVolume's node affinity"
NONE_TO_BIND = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
WRONG_ZONE = Refusal(ZONES, ("node(s) had no available volume zone",))
DISK_CONFLICT = Refusal(RESTRICTIONS, ("node(s) had no available disk",), resolvable=True)
IN_USE = Refusal(
    RESTRICTIONS,
    (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by "
        "another pod",
    ),
    resolvable=True,
)
ZONE_LABELS = {
    ZONE: ZONE,
    REGION: REGION,
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "failure-domain.beta.kubernetes.io/region": REGION,
}
"""With the label that has taken the place of each."""


class Needs(msgspec.Struct, frozen=True):
    """The steps before a pod can be bound: volumes to bind to claims, and claims to provision."""

    bindings: tuple[tuple[PersistentVolume, PersistentVolumeClaim], ...] = ()
    provisions: tuple[PersistentVolumeClaim, ...] = ()


NO_NEEDS = Needs()


class _Claims(msgspec.Struct, frozen=True):
    bound: tuple[PersistentVolumeClaim, ...]
    delayed: tuple[PersistentVolumeClaim, ...]


class VolumeFilter:
    """The filter for one pod's volumes. ``refusal``: set if no node is feasible. ``filters``: in upstream's order."""

    def __init__(self, info: PodInfo, volumes: Volumes, state: ClusterState) -> None:
        self._volumes = volumes
        self._state = state
        self._info = info
        self.refusal: Refusal | None = None
        self._claims = _Claims((), ())
        self._candidates: dict[str, list[PersistentVolume]] = {}
        self._roomy: dict[str, list[Selector]] = {}
        self.filters: list[Filter] = []
        if info.disks:
            self.filters.append(self._disks)
        if not info.claims:
            return
        found = self._find(info.pod)
        if isinstance(found, Refusal):
            self.refusal = found
            return
        self._claims = found
        if self._is_in_use():
            self.filters.append(lambda node: IN_USE)
        limited = limits_filter(info, volumes)
        if limited is not None:
            self.filters.append(limited)
        self.filters += [self._binding, self._zone]

    def needs(self, node: NodeInfo) -> Needs:
        """The steps for a node that passed the filters."""
        found = self._match(node)
        return found if isinstance(found, Needs) else NO_NEEDS

    def _find(self, pod: SimulatedPod) -> _Claims | Refusal:
        bound, delayed, immediate = [], [], []
        made = {f"{pod.name}-{volume.name}" for volume in pod.spec.volumes if volume.ephemeral is not None}
        for name in self._info.claims:  # VolumeRestrictions comes first
            if name not in made and self._volumes.claims.get(f"{pod.namespace}/{name}") is None:
                return Refusal(RESTRICTIONS, (f'persistentvolumeclaim "{name}" not found',))
        for name in self._info.claims:
            claim = self._volumes.claims.get(f"{pod.namespace}/{name}")
            problem = _problem(pod, name, claim, made=name in made)
            if claim is None or problem:
                return Refusal(BINDING, (problem,))
            if claim.spec.volume_name and BIND_COMPLETED in claim.annotations:
                bound.append(claim)
            elif self._waits(claim) and not claim.spec.volume_name:
                delayed.append(claim)
            else:
                immediate.append(claim)
        if immediate:
            return Refusal(BINDING, ("pod has unbound immediate PersistentVolumeClaims",))
        for claim in bound:
            if self._volumes.volumes.get(claim.spec.volume_name) is None:
                return Refusal(ZONES, (f'persistentvolume "{claim.spec.volume_name}" not found',))
        return _Claims(tuple(bound), tuple(delayed))

    def _waits(self, claim: PersistentVolumeClaim) -> bool:
        return waits_for_consumer(self._volumes.classes.get(class_of_claim(claim)))

    def _binding(self, node: NodeInfo) -> Refusal | None:
        reasons = []
        volumes = [self._volumes.volumes.get(claim.spec.volume_name) for claim in self._claims.bound]
        if not all(reaches(volume, node) for volume in volumes if volume is not None):
            reasons.append(NOT_THERE)
        found = self._match(node)
        if isinstance(found, str):
            reasons.append(found)
        return Refusal(BINDING, tuple(reasons)) if reasons else None

    def _zone(self, node: NodeInfo) -> Refusal | None:
        if not any(label in node.labels for label in ZONE_LABELS):
            return None  # the cluster has no zones
        for claim in self._claims.bound:
            volume = self._volumes.volumes.get(claim.spec.volume_name)
            if volume is None:
                continue
            for label, stable in ZONE_LABELS.items():
                zones = volume.labels.get(label)
                if zones is not None and node.labels.get(label, node.labels.get(stable)) not in zones.split("__"):
                    return WRONG_ZONE
        return None

    def _is_in_use(self) -> bool:
        """Whether another pod uses a ReadWriteOncePod claim of the pod."""
        claims = (*self._claims.bound, *self._claims.delayed)  # the volume may be on its way, for the other one
        alone = {c.name for c in claims if "ReadWriteOncePod" in c.spec.access_modes}
        return bool(alone) and any(
            not alone.isdisjoint(other.claims) for other in self._state.pods_of(self._info.pod.namespace)
        )

    def _disks(self, node: NodeInfo) -> Refusal | None:
        others = (other for pod in node.pods.values() for other in pod.disks)
        taken = any(disk.conflicts(other) for other in others for disk in self._info.disks)
        return DISK_CONFLICT if taken else None

    def _match(self, node: NodeInfo) -> Needs | str:
        """The volumes for unbound claims and the claims to provision, or a text that says why that is not possible."""
        bindings: list[tuple[PersistentVolume, PersistentVolumeClaim]] = []
        selected: list[PersistentVolumeClaim] = []
        unmatched: list[PersistentVolumeClaim] = []
        chosen: set[str] = set(self._volumes.promised)
        for claim in sorted(self._claims.delayed, key=requested):
            place = claim.annotations.get(SELECTED_NODE) or self._volumes.selected.get(claim.key)
            if place is not None:
                if place != node.name:
                    return NONE_TO_BIND
                selected.append(claim)
                continue
            volume = self._smallest(claim, node, chosen)
            if volume is None:
                unmatched.append(claim)
            else:
                chosen.add(volume.name)
                bindings.append((volume, claim))
        provisions = (*selected, *unmatched)
        for claim in provisions:
            problem = self._provisioning_problem(claim, node)
            if problem:
                return problem
        return Needs(tuple(bindings), provisions)

    def _smallest(self, claim: PersistentVolumeClaim, node: NodeInfo, taken: set[str]) -> PersistentVolume | None:
        candidates = self._candidates.get(claim.key)
        if candidates is None:
            candidates = self._candidates[claim.key] = _candidates(self._volumes.volumes, claim)
        fitting = (volume for volume in candidates if volume.name not in taken and reaches(volume, node))
        return next(fitting, None)

    def _provisioning_problem(self, claim: PersistentVolumeClaim, node: NodeInfo) -> str:
        """Why no volume can be provisioned for a claim on a node; empty if it can."""
        class_ = self._volumes.classes.get(class_of_claim(claim))
        if class_ is None or class_.provisioner in ("", NO_PROVISIONER):
            return NONE_TO_BIND
        if not allows(class_, node.labels):
            return NONE_TO_BIND
        return "" if self._has_space(claim, class_, node) else NO_SPACE

    def _has_space(self, claim: PersistentVolumeClaim, class_: StorageClass, node: NodeInfo) -> bool:
        """Whether the driver has capacity for a claim, if it publishes that."""
        driver = self._volumes.drivers.get(class_.provisioner)
        if driver is None or not driver.spec.storage_capacity:
            return True
        roomy = self._roomy.get(claim.key)
        if roomy is None:
            roomy = self._roomy[claim.key] = _with_room(self._volumes.capacities, class_, requested(claim))
        return any(nodes.matches(node.labels) for nodes in roomy)


def room_of(capacity: CsiStorageCapacity) -> Quantity | None:
    """The maximum size of a volume; None if it is unknown."""
    text = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
    return quantity.parse(text) if text is not None and quantity.is_quantity(text) else None


def _with_room(capacities: Iterable[CsiStorageCapacity], class_: StorageClass, size: Quantity) -> list[Selector]:
    """Selectors of the nodes with capacity for a volume of a class."""
    roomy = (one for one in capacities if one.storage_class_name == class_.name and one.node_topology is not None)
    return [selector_of(one.node_topology) for one in roomy if (room := room_of(one)) is not None and room >= size]


def _problem(pod: SimulatedPod, name: str, claim: PersistentVolumeClaim | None, *, made: bool) -> str:
    """Why a claim cannot be used. ``made``: it is created for an ephemeral volume."""
    if claim is None:
        return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
    if claim.status.phase == "Lost":
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"'
    if claim.deleting:
        return f'persistentvolumeclaim "{name}" is being deleted'
    owner = controller_of(claim)
    if made and (owner is None or owner.uid != pod.uid):
        return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"
    return ""


def reaches(volume: PersistentVolume, node: NodeInfo | SimulatedNode) -> bool:
    """Whether a volume is accessible from a node."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return True
    return selects(affinity.required, node.name, node.labels)


def _candidates(volumes: Store[PersistentVolume], claim: PersistentVolumeClaim) -> list[PersistentVolume]:
    """The volumes for a claim, the best first; only the reserved one, if there is one."""
    suiting = sorted((v for v in volumes if satisfies(v, claim)), key=lambda v: (capacity(v), v.name))
    kept = [volume for volume in suiting if points_to(volume, claim)]
    return kept[:1] or [volume for volume in suiting if _is_free(volume, claim)]


def _is_free(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    if volume.spec.claim_ref is not None or volume.status.phase != "Available":
        return False
    if class_of_volume(volume) != class_of_claim(claim) or not has_access_modes(volume, claim):
        return False
    return claim.spec.selector is None or selector_of(claim.spec.selector).matches(volume.labels)
