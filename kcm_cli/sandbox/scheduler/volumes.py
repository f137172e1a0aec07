"""Volumes: which nodes can have those of a pod, and what has to be bound or provisioned first.

upstream: pkg/scheduler/framework/plugins/{volumebinding,volumezone,volumerestrictions}
"""

from dataclasses import dataclass

from kcm_cli.api.core import PersistentVolumeClaim
from kcm_cli.api.storage import PersistentVolume
from kcm_cli.machinery import quantity
from kcm_cli.machinery.meta import controller_of
from kcm_cli.planning.node_affinity import selects
from kcm_cli.sandbox.scheduler.podinfo import PodInfo, selector_of
from kcm_cli.sandbox.scheduler.state import ClusterState, NodeInfo
from kcm_cli.sandbox.scheduler.stores import Volumes
from kcm_cli.sandbox.scheduler.verdict import Filter, Refusal
from kcm_cli.sandbox.scheduler.volume_limits import limits_filter
from kcm_cli.sandbox.views import SimulatedPod

BINDING, ZONES, RESTRICTIONS = "VolumeBinding", "VolumeZone", "VolumeRestrictions"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
WAITS = "WaitForFirstConsumer"
NOT_THERE = "node(s) didn't match PersistentVolume's node affinity"
NONE_TO_BIND = "node(s) didn't find available persistent volumes to bind"
WRONG_ZONE = Refusal(ZONES, ("node(s) had no available volume zone",))
IN_USE = Refusal(
    RESTRICTIONS,
    (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by "
        "another pod",
    ),
    resolvable=True,
)
_ZONE_LABELS = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)


@dataclass(frozen=True, slots=True)
class Needs:
    """What has to happen before a pod can be bound: volumes to be given to claims, and claims to be provisioned."""

    bindings: tuple[tuple[PersistentVolume, PersistentVolumeClaim], ...] = ()
    provisions: tuple[PersistentVolumeClaim, ...] = ()


NO_NEEDS = Needs()


@dataclass(frozen=True, slots=True)
class _Claims:
    bound: tuple[PersistentVolumeClaim, ...]
    delayed: tuple[PersistentVolumeClaim, ...]


class VolumeFilter:
    """The volumes of one pod. ``refusal`` is set where no node will do; ``filters`` are in upstream's order."""

    def __init__(self, info: PodInfo, volumes: Volumes, state: ClusterState) -> None:
        self._volumes = volumes
        self._state = state
        self._info = info
        self.refusal: Refusal | None = None
        self._claims = _Claims((), ())
        self.filters: list[Filter] = []
        if not info.claims:
            return
        found = self._find(info.pod)
        if isinstance(found, Refusal):
            self.refusal = found
            return
        self._claims = found
        if any("ReadWriteOncePod" in claim.spec.access_modes for claim in found.bound):
            self.filters.append(self._restricted)
        limited = limits_filter(info, volumes)
        if limited is not None:
            self.filters.append(limited)
        self.filters += [self._binding, self._zone]

    def needs(self, node: NodeInfo) -> Needs:
        """What has to happen if the pod goes to this node, which the filters have passed."""
        return self._match(node) or NO_NEEDS

    def _find(self, pod: SimulatedPod) -> _Claims | Refusal:
        bound, delayed, immediate = [], [], []
        made = {f"{pod.name}-{volume.name}" for volume in pod.spec.volumes if volume.ephemeral is not None}
        for name in self._info.claims:
            claim = self._volumes.claims.get(f"{pod.namespace}/{name}")
            problem = _problem(pod, name, claim, ephemeral=name in made)
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
        class_ = self._volumes.classes.get(claim.spec.storage_class_name or "")
        return class_ is not None and class_.volume_binding_mode == WAITS

    def _binding(self, node: NodeInfo) -> Refusal | None:
        reasons = []
        volumes = [self._volumes.volumes.get(claim.spec.volume_name) for claim in self._claims.bound]
        if not all(_reaches(volume, node) for volume in volumes if volume is not None):
            reasons.append(NOT_THERE)
        if self._match(node) is None:
            reasons.append(NONE_TO_BIND)
        return Refusal(BINDING, tuple(reasons)) if reasons else None

    def _zone(self, node: NodeInfo) -> Refusal | None:
        for claim in self._claims.bound:
            volume = self._volumes.volumes.get(claim.spec.volume_name)
            if volume is None:
                continue
            for label in _ZONE_LABELS:
                zones = volume.labels.get(label)
                if zones is not None and node.labels.get(label) not in zones.split("__"):
                    return WRONG_ZONE
        return None

    def _restricted(self, node: NodeInfo) -> Refusal | None:
        alone = {c.name for c in self._claims.bound if "ReadWriteOncePod" in c.spec.access_modes}
        namespace = self._info.pod.namespace
        for other_node in self._state.all():
            for other in other_node.pods.values():
                if other.pod.namespace == namespace and alone.intersection(other.claims):
                    return IN_USE
        return None

    def _match(self, node: NodeInfo) -> Needs | None:
        """The claims that wait for a node, matched to volumes or to be provisioned; None where that cannot be."""
        bindings: list[tuple[PersistentVolume, PersistentVolumeClaim]] = []
        provisions: list[PersistentVolumeClaim] = []
        chosen: set[str] = set(self._volumes.promised)
        for claim in sorted(self._claims.delayed, key=_size):
            selected = claim.annotations.get(SELECTED_NODE) or self._volumes.selected.get(claim.key)
            if selected is not None and selected != node.name:
                return None
            volume = None if selected is not None else self._smallest(claim, node, chosen)
            if volume is not None:
                chosen.add(volume.name)
                bindings.append((volume, claim))
            elif self._can_provision(claim, node):
                provisions.append(claim)
            else:
                return None
        return Needs(tuple(bindings), tuple(provisions))

    def _smallest(self, claim: PersistentVolumeClaim, node: NodeInfo, taken: set[str]) -> PersistentVolume | None:
        fitting = [v for v in self._volumes.volumes if v.name not in taken and _fits(v, claim, node)]
        return min(fitting, key=lambda volume: (_capacity(volume), volume.name), default=None)

    def _can_provision(self, claim: PersistentVolumeClaim, node: NodeInfo) -> bool:
        class_ = self._volumes.classes.get(claim.spec.storage_class_name or "")
        if class_ is None or class_.provisioner in ("", NO_PROVISIONER):
            return False
        terms = class_.allowed_topologies
        return not terms or any(
            all(node.labels.get(item.key) in item.values for item in term.match_label_expressions) for term in terms
        )


def _problem(pod: SimulatedPod, name: str, claim: PersistentVolumeClaim | None, *, ephemeral: bool) -> str:
    if claim is None:
        if ephemeral:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        return f'persistentvolumeclaim "{name}" not found'
    if claim.status.phase == "Lost":
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"'
    if claim.deleting:
        return f'persistentvolumeclaim "{name}" is being deleted'
    owner = controller_of(claim)
    if ephemeral and (owner is None or owner.uid != pod.uid):
        return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"
    return ""


def _reaches(volume: PersistentVolume, node: NodeInfo) -> bool:
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return True
    return selects(affinity.required, node.name, node.labels)


def _fits(volume: PersistentVolume, claim: PersistentVolumeClaim, node: NodeInfo) -> bool:
    spec, wanted = volume.spec, claim.spec
    if volume.deleting or not _same_size_or_more(volume, claim) or not _reaches(volume, node):
        return False
    if (spec.volume_mode or "Filesystem") != (wanted.volume_mode or "Filesystem"):
        return False
    if spec.claim_ref is not None:
        ref = spec.claim_ref
        return (ref.namespace, ref.name) == (claim.namespace, claim.name) and ref.uid in ("", claim.uid)
    if volume.status.phase != "Available" or spec.storage_class_name != (wanted.storage_class_name or ""):
        return False
    if wanted.selector is not None and not selector_of(wanted.selector).matches(volume.labels):
        return False
    return set(wanted.access_modes) <= set(spec.access_modes)


def _same_size_or_more(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return _capacity(volume) >= _size(claim)


def _capacity(volume: PersistentVolume) -> int:
    return quantity.parse((volume.spec.capacity or {}).get("storage", "0")).value()


def _size(claim: PersistentVolumeClaim) -> int:
    wanted = claim.spec.resources.requests if claim.spec.resources is not None else None
    return quantity.parse((wanted or {}).get("storage", "0")).value()
