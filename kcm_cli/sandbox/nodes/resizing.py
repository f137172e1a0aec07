"""Resizes of running pods: what a kubelet allocates at once, and what is deferred until there is room.

upstream: pkg/kubelet/{allocation/allocation_manager,events/resize,status/status_manager}.go
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from kcm_cli.api.core import ResourceRequirements
from kcm_cli.machinery import codec, quantity
from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.nodes.conditions import TRUE
from kcm_cli.sandbox.nodes.containers import instant
from kcm_cli.sandbox.views import SimulatedContainer, SimulatedPod, SimulatedPodSpec

PENDING = "PodResizePending"
DEFERRED = "Deferred"
FIRST_RETRY_S, RETRY_S = 30.0, 180.0
_NOTHING = ResourceRequirements()


class Pending(msgspec.Struct, frozen=True):
    """A deferred resize. ``since``: when it was deferred first; ``probed``: when it was tried last."""

    message: str
    generation: int
    since: float
    probed: float

    def condition(self) -> Doc:
        return {
            "type": PENDING,
            "status": TRUE,
            "reason": DEFERRED,
            "message": self.message,
            "observedGeneration": self.generation,
            "lastProbeTime": instant(self.probed),
            "lastTransitionTime": instant(self.since),
        }


def deferred(before: Pending | None, message: str, generation: int, now: float) -> Pending:
    """A resize that is deferred now, or still. ``before``: the pending one."""
    return Pending(message, generation, before.since if before is not None else now, now)


def differs(spec: SimulatedPodSpec, granted: SimulatedPodSpec) -> bool:
    """Whether a spec requests other resources than those allocated (``granted``)."""
    if spec is granted:
        return False
    return spec.resources != granted.resources or any(
        new.resources != old.resources for new, old in _pairs(spec, granted)
    )


def changed(spec: SimulatedPodSpec, granted: SimulatedPodSpec) -> dict[str, bool]:
    """The containers with other resources, each with whether it must be restarted for the resize."""
    return {
        new.name: any(_needs_restart(new, name) for name in names)
        for new, old in _pairs(spec, granted)
        if (names := _changed(new, old))
    }


def with_granted(pod: SimulatedPod, granted: SimulatedPodSpec) -> SimulatedPod:
    """The pod with the allocated resources in its spec."""
    if not differs(pod.spec, granted):
        return pod
    spec = msgspec.structs.replace(
        pod.spec,
        resources=granted.resources,
        containers=_given(pod.spec.containers, granted.containers),
        init_containers=_given(pod.spec.init_containers, granted.init_containers),
    )
    return msgspec.structs.replace(pod, spec=spec)


def granted_before(pod: SimulatedPod) -> SimulatedPod:
    """The pod with the allocated resources in its status, for a kubelet that was restarted."""
    status = pod.status
    if not any(condition.type == PENDING for condition in status.conditions):
        return pod
    resources = {s.name: s.resources for s in (*status.init_container_statuses, *status.container_statuses)}
    spec = msgspec.structs.replace(
        pod.spec,
        resources=_held_by_pod(pod),
        containers=_with_resources(pod.spec.containers, resources),
        init_containers=_with_resources(pod.spec.init_containers, resources),
    )
    return msgspec.structs.replace(pod, spec=spec)


def _held_by_pod(pod: SimulatedPod) -> ResourceRequirements | None:
    """What is allocated to the pod as a whole, of the resources that its spec has so."""
    asked, status = pod.spec.resources, pod.status
    if asked is None:
        return None
    limits = status.resources.limits if status.resources is not None else None
    return ResourceRequirements(
        requests=_held(asked.requests, status.allocated_resources, pod), limits=_held(asked.limits, limits, pod)
    )


def _held(asked: Mapping[str, str] | None, held: Mapping[str, str] | None, pod: SimulatedPod) -> dict[str, str] | None:
    """held: with the pod's overhead."""
    if asked is None or held is None:
        return None if asked is None else dict(asked)
    overhead = pod.spec.overhead or {}
    return {
        name: str(quantity.parse(held[name]) - quantity.parse(overhead.get(name, "0"))) if name in held else amount
        for name, amount in asked.items()
    }


def message(prefix: str, pod: SimulatedPod, error: str = "") -> str:
    """The message of an Event, with the requested resources."""
    summary: Doc = {}
    for key, containers in (("initContainers", pod.spec.init_containers), ("containers", pod.spec.containers)):
        if containers:
            summary[key] = [{"name": c.name, "resources": _doc(c.resources or _NOTHING)} for c in containers]
    summary["generation"] = pod.metadata.generation
    if error:
        summary["error"] = error
    return f"{prefix}: {codec.encode(summary).decode()}"


def _doc(resources: ResourceRequirements) -> Doc:
    parts = (("limits", resources.limits), ("requests", resources.requests))
    return {key: dict(sorted(amounts.items())) for key, amounts in parts if amounts}


def _pairs(
    spec: SimulatedPodSpec, granted: SimulatedPodSpec
) -> Iterator[tuple[SimulatedContainer, SimulatedContainer]]:
    yield from zip(spec.containers, granted.containers, strict=False)
    yield from zip(spec.init_containers, granted.init_containers, strict=False)


def _changed(new: SimulatedContainer, old: SimulatedContainer) -> set[str]:
    """The resources whose quantities change."""
    after, before = new.resources or _NOTHING, old.resources or _NOTHING
    pairs = ((after.requests or {}, before.requests or {}), (after.limits or {}, before.limits or {}))
    return {name for one, other in pairs for name in one.keys() | other.keys() if one.get(name) != other.get(name)}


def _needs_restart(container: SimulatedContainer, name: str) -> bool:
    return any(p.resource_name == name and p.restart_policy == "RestartContainer" for p in container.resize_policy)


def _given(
    containers: Sequence[SimulatedContainer], granted: Sequence[SimulatedContainer]
) -> tuple[SimulatedContainer, ...]:
    pairs = zip(containers, granted, strict=True)
    return tuple(msgspec.structs.replace(new, resources=old.resources) for new, old in pairs)


def _with_resources(
    containers: Sequence[SimulatedContainer], resources: dict[str, ResourceRequirements | None]
) -> tuple[SimulatedContainer, ...]:
    return tuple(msgspec.structs.replace(c, resources=resources.get(c.name) or c.resources) for c in containers)
