"""The rolling update: deletes pods that do not have the update revision, the highest ordinal first.

Without the gate MaxUnavailableStatefulSet one pod is deleted at a time, and none while an updated pod is unavailable.
An old pod that never became ready does not block the update; an updated one blocks it for good. A rollout of a broken
revision stops there, and a rollback requires that the broken pod is deleted by hand.

upstream: pkg/controller/statefulset/stateful_set_control.go#updateStatefulSetAfterInvariantEstablished
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime

from kcm_cli.api.apps import StatefulSet
from kcm_cli.api.core import Pod
from kcm_cli.controllers.statefulset.plan.identity import start_of
from kcm_cli.controllers.statefulset.plan.snapshot import Snapshot
from kcm_cli.planning.pods import is_available
from kcm_cli.planning.replicas import replicas_of
from kcm_cli.planning.rollout import at_least_one

ON_DELETE = "OnDelete"
PARALLEL = "Parallel"

PresentPods = Sequence[tuple[int, Pod, str]]
"""The wanted pods that there are, in order: ordinal, pod, revision."""


def outdated(
    snapshot: Snapshot, present: PresentPods, deleted: AbstractSet[str], now: datetime, *, counts_unavailable: bool
) -> tuple[Pod, ...]:
    """The pods to delete. ``deleted``: the uids of pods that are deleted in this sync for other reasons."""
    if snapshot.set.spec.update_strategy.type == ON_DELETE:
        return ()
    if counts_unavailable:
        return _as_many_as_allowed(snapshot, present, deleted, now)
    return _one(snapshot, present, deleted, now)


def partition_of(set_: StatefulSet) -> int:
    rolling = set_.spec.update_strategy.rolling_update
    return (rolling.partition or 0) if rolling is not None else 0


def max_unavailable(set_: StatefulSet) -> int:
    """maxUnavailable in pods, at least 1. Raises FormatError."""
    rolling = set_.spec.update_strategy.rolling_update
    return at_least_one(rolling.max_unavailable if rolling is not None else None, replicas_of(set_))


def unavailable(snapshot: Snapshot, present: PresentPods, now: datetime) -> int:
    """The number of wanted pods that are missing, being deleted, or not available."""
    return replicas_of(snapshot.set) - sum(not _unavailable(snapshot, pod, now) for _, pod, _ in present)


def _one(snapshot: Snapshot, present: PresentPods, deleted: AbstractSet[str], now: datetime) -> tuple[Pod, ...]:
    lowest = _lowest(snapshot.set)
    expected = start_of(snapshot.set) + replicas_of(snapshot.set)
    for ordinal, pod, revision in reversed(present):
        expected -= 1
        if ordinal < max(lowest, expected):
            return ()  # below the partition, or a pod is missing
        if revision != snapshot.update.name and not pod.deleting:
            return (pod,) if pod.uid not in deleted else ()
        if _unavailable(snapshot, pod, now):
            return ()
    return ()


def _as_many_as_allowed(
    snapshot: Snapshot, present: PresentPods, deleted: AbstractSet[str], now: datetime
) -> tuple[Pod, ...]:
    """Available pods as long as there are fewer unavailable ones than allowed. In a parallel set, unavailable pods of
    an old revision go first, and do not count among these: they may never become available (kubernetes#137409)."""
    room = max_unavailable(snapshot.set) - unavailable(snapshot, present, now)
    lowest = _lowest(snapshot.set)
    candidates = [
        pod
        for ordinal, pod, revision in reversed(present)
        if ordinal >= lowest and revision != snapshot.update.name and not pod.deleting
    ]
    broken: list[Pod] = []
    if snapshot.set.spec.pod_management_policy == PARALLEL:
        broken = [pod for pod in candidates if _unavailable(snapshot, pod, now)]
        candidates = [pod for pod in candidates if not _unavailable(snapshot, pod, now)]
    chosen = broken[: max(0, room + len(broken))] + candidates[: max(0, room)]
    return tuple(pod for pod in chosen if pod.uid not in deleted)


def _lowest(set_: StatefulSet) -> int:
    """The lowest ordinal that is updated."""
    return start_of(set_) + partition_of(set_)


def _unavailable(snapshot: Snapshot, pod: Pod, now: datetime) -> bool:
    return pod.deleting or not is_available(pod, snapshot.set.spec.min_ready_seconds, now)
