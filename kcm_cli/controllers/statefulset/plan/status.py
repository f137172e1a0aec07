"""The status of a StatefulSet.

upstream: pkg/controller/statefulset/stateful_set_control.go#computeReplicaStatus, stateful_set_utils.go#
completeRollingUpdate, inconsistentStatus
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from kcm_cli.api.apps import StatefulSet, StatefulSetStatus
from kcm_cli.api.core import Pod
from kcm_cli.controllers.statefulset.plan.decide import Replicas
from kcm_cli.controllers.statefulset.plan.identity import revision_of
from kcm_cli.controllers.statefulset.plan.snapshot import Revision, Snapshot
from kcm_cli.planning.actions import Outcome
from kcm_cli.planning.pods import is_available, is_ready
from kcm_cli.planning.replicas import replicas_of

_COMPARED = (
    "replicas",
    "ready_replicas",
    "available_replicas",
    "current_replicas",
    "updated_replicas",
    "current_revision",
    "update_revision",
)


def status(snapshot: Snapshot, planned: Replicas, outcome: Outcome, now: datetime) -> StatefulSetStatus:
    """The status after this outcome."""
    updating = dict(zip(map(id, planned.stages[-1].actions), planned.updating, strict=True)) if planned.updating else {}
    updated = [updating[id(done.action)] for done in outcome.done if id(done.action) in updating]
    held = [slot.pod for slot in planned.slots if slot.pod is not None]
    pods = snapshot.pods if snapshot.set.deleting else (*held, *planned.condemned)
    counted = _counted(snapshot, pods, now)
    former = sum(revision_of(pod) == snapshot.current.name for pod in updated)
    if former:
        counted = msgspec.structs.replace(counted, current_replicas=counted.current_replicas - former)
    return _completed(snapshot, counted)


def unobserved(set_: StatefulSet, pods: Sequence[Pod], now: datetime) -> StatefulSetStatus:
    """The status where nothing could be decided: the pods are counted, for the revisions and the generation that were
    observed before."""
    old = set_.status
    current, update = Revision(old.current_revision, {}), Revision(old.update_revision, {})
    counted = _counted(Snapshot(set_, tuple(pods), current, update, {}, old.collision_count or 0), pods, now)
    return msgspec.structs.replace(counted, observed_generation=old.observed_generation)


def _counted(snapshot: Snapshot, pods: Iterable[Pod], now: datetime) -> StatefulSetStatus:
    replicas = ready = available = current = updated = 0
    for pod in pods:
        if not pod.status.phase:
            continue
        replicas += 1
        if pod.status.phase == "Running" and is_ready(pod):
            ready += 1
            available += is_available(pod, snapshot.set.spec.min_ready_seconds, now)
        if not pod.deleting:
            revision = revision_of(pod)
            current += revision == snapshot.current.name
            updated += revision == snapshot.update.name
    return StatefulSetStatus(
        replicas=replicas,
        ready_replicas=ready,
        available_replicas=available,
        current_replicas=current,
        updated_replicas=updated,
        current_revision=snapshot.current.name,
        update_revision=snapshot.update.name,
        observed_generation=snapshot.set.metadata.generation,
        collision_count=snapshot.collisions,
    )


def _completed(snapshot: Snapshot, counted: StatefulSetStatus) -> StatefulSetStatus:
    """The status in which the update revision becomes the current one, once all pods have it and are ready, whoever
    replaced them (kubernetes#73492)."""
    wanted = replicas_of(snapshot.set)
    if not counted.updated_replicas == counted.ready_replicas == counted.replicas == wanted:
        return counted
    return msgspec.structs.replace(
        counted, current_replicas=counted.updated_replicas, current_revision=counted.update_revision
    )


def differs(old: StatefulSetStatus, new: StatefulSetStatus) -> bool:
    """Whether the new status has to be written. A new collision count alone is no reason."""
    if new.observed_generation > old.observed_generation:
        return True
    return any(getattr(old, field) != getattr(new, field) for field in _COMPARED)
