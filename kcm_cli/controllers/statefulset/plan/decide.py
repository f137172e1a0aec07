"""Decides which pods to create, update and delete, and in which order.

An ordered set does one thing at a time: each pod waits for those with lower ordinals. When all wanted pods are
available, surplus pods are deleted from the highest ordinal down. After that a new revision is rolled out. A parallel
set does all this at once; the rolling update is the same for both.

upstream: pkg/controller/statefulset/stateful_set_control.go#updateStatefulSet
"""

from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from kcm_cli.api.apps import StatefulSet
from kcm_cli.api.core import Pod
from kcm_cli.controllers.statefulset.plan.claims import (
    ClaimWork,
    Ownership,
    blocked_by_stale_claim,
    claim_work,
    ownership,
    to_create,
)
from kcm_cli.controllers.statefulset.plan.identity import (
    as_read,
    enough_claims,
    identity_matches,
    in_range,
    ordinal_of,
    ordinals_at_hand,
    pod_name,
    pods_with_claims,
    revision_of,
)
from kcm_cli.controllers.statefulset.plan.pod import new_pod, new_revision, storage_matches
from kcm_cli.controllers.statefulset.plan.snapshot import Snapshot
from kcm_cli.controllers.statefulset.plan.update import PARALLEL, PresentPods, outdated
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.kref import kobj
from kcm_cli.planning.actions import Action, Mode, Plan, Remark, Stage, stages
from kcm_cli.planning.pods import is_available, is_terminal

REFUSALS = 5
"""After more failures than this, the rest of a parallel set waits for the next sync."""


class CreatePod(msgspec.Struct, frozen=True):
    """Create missing claims, then the pod."""

    name: str
    body: Doc
    claims: ClaimWork


class DeletePod(msgspec.Struct, frozen=True):
    """Delete a pod. ``remark`` is logged before."""

    pod: Pod
    reason: str
    remark: Remark | None = None


class CreateClaims(msgspec.Struct, frozen=True):
    """Create the claims that a pending pod lacks, and update their owners."""

    pod: Pod
    claims: ClaimWork


class OwnClaims(msgspec.Struct, frozen=True):
    """Update the owners of a surplus pod's claims before the pod is deleted."""

    pod: Pod
    ownership: tuple[Ownership, ...]


class UpdatePod(msgspec.Struct, frozen=True):
    """Restore what is derived from the ordinal. ``pod_differs``: the pod's labels or volumes are wrong, too, and not
    only its claims."""

    pod: Pod
    claims: ClaimWork
    pod_differs: bool


Step = CreatePod | DeletePod | CreateClaims | OwnClaims | UpdatePod
Groups = Sequence[tuple[Step, ...]]
"""The steps of several pods."""


class PodSteps(Action, frozen=True, gc=False):
    """The steps of one pod, in order, as one action: a failed step skips the rest."""

    set: StatefulSet
    steps: tuple[Step, ...]


class Slot(msgspec.Struct, frozen=True):
    """A wanted ordinal: its pod, if there is one, and the revision that the pod has or will have."""

    ordinal: int
    pod: Pod | None
    revision: str


class Replicas(msgspec.Struct, frozen=True):
    """The decision of one sync: the wanted ordinals, the surplus pods from the highest ordinal down, and the writes.

    updating: the pods that the last stage deletes because of their revision. cut_short: so many claims are created that
    later ordinals are left to the next sync.
    """

    @property
    def deleted(self) -> Iterator[Pod]:
        """The pods that are deleted for any reason."""
        actions = (action for stage in self.stages for action in stage.actions if isinstance(action, PodSteps))
        return (step.pod for action in actions for step in action.steps if isinstance(step, DeletePod))

    slots: tuple[Slot, ...]
    condemned: tuple[Pod, ...]
    stages: Plan = ()
    updating: tuple[Pod, ...] = ()
    cut_short: bool = False


def plan(snapshot: Snapshot, now: datetime, *, counts_unavailable: bool = False) -> Replicas:
    """Decide about the steps of one sync. ``counts_unavailable``: gate MaxUnavailableStatefulSet."""
    set_ = snapshot.set
    slots, condemned = _slots(snapshot), _condemned(snapshot)
    if set_.deleting:
        return Replicas(slots, condemned)
    together = set_.spec.pod_management_policy == PARALLEL
    if together:
        parts, cut_short = _all_at_once(snapshot, slots, condemned)
        through = True
    else:
        parts, through, cut_short = _in_order(snapshot, slots, condemned, now)
    first = [_stage(set_, groups, together=together) for groups in parts]
    if not through:
        return Replicas(slots, condemned, stages(*first), cut_short=cut_short)
    steps = (step for groups in parts for group in groups for step in group)
    deleted = {step.pod.uid for step in steps if isinstance(step, DeletePod)}
    old = outdated(snapshot, present_pods(slots), deleted, now, counts_unavailable=counts_unavailable)
    updating = _stage(set_, [(_update_deletion(set_, pod),) for pod in old])
    return Replicas(slots, condemned, stages(*first, updating), old, cut_short)


def _stage(set_: StatefulSet, groups: Groups, *, together: bool = False) -> Stage:
    """A stage with the steps of each pod. ``together``: the pods do not wait for each other."""
    actions = tuple(PodSteps(set_, steps) for steps in groups)
    if together:
        return Stage(actions, Mode.SLOW_START, tolerates=REFUSALS, anyway=True)
    return Stage(actions, Mode.SEQUENTIAL)


def _update_deletion(set_: StatefulSet, pod: Pod) -> DeletePod:
    fields = {"statefulSet": kobj(set_), "pod": kobj(pod)}
    return DeletePod(pod, "outdated revision", Remark("Pod of StatefulSet is terminating for update", fields))


def _surplus_deletion(set_: StatefulSet, pod: Pod) -> DeletePod:
    fields = {"statefulSet": kobj(set_), "pod": kobj(pod)}
    return DeletePod(pod, "scale down", Remark("Pod of StatefulSet is terminating for scale down", fields))


def present_pods(slots: Sequence[Slot]) -> PresentPods:
    """The wanted pods that exist."""
    return [(slot.ordinal, slot.pod, slot.revision) for slot in slots if slot.pod is not None]


def _slots(snapshot: Snapshot) -> tuple[Slot, ...]:
    """The wanted ordinals to look at: all that have a pod, and a limited number of those that have none.

    If several pods have the same ordinal (``db-1``, ``db-01``), the one with the canonical name counts.
    """
    set_ = snapshot.set
    found: dict[int, Pod] = {}
    for pod in snapshot.pods:
        ordinal = ordinal_of(pod)
        if in_range(set_, ordinal) and (ordinal not in found or pod.name == pod_name(set_, ordinal)):
            found[ordinal] = pod
    slots: list[Slot] = []
    near = ordinals_at_hand(set_, found)
    for ordinal in (*near, *sorted(ordinal for ordinal in found if ordinal >= near.stop)):
        own = found.get(ordinal)
        revision = revision_of(own) if own is not None else new_revision(snapshot, ordinal).name
        slots.append(Slot(ordinal, own, revision))
    return tuple(slots)


def _condemned(snapshot: Snapshot) -> tuple[Pod, ...]:
    surplus = [(ordinal_of(pod), pod) for pod in snapshot.pods]
    outside = [(o, pod) for o, pod in surplus if o >= 0 and not in_range(snapshot.set, o)]
    return tuple(pod for _, pod in sorted(outside, key=lambda item: (-item[0], item[1].name)))


# -- one at a time


def _in_order(
    snapshot: Snapshot, slots: Sequence[Slot], condemned: Sequence[Pod], now: datetime
) -> tuple[list[Groups], bool, bool]:
    """The steps up to the first pod that others have to wait for, whether there is no such pod, and whether later
    pods are left to the next sync."""
    living: list[tuple[Step, ...]] = []
    missing = 0
    for slot in slots:
        if enough_claims(missing):
            return [living], False, True
        steps, may_go_on = _ordered_slot(snapshot, slot, now)
        if steps:
            living.append(steps)
            missing += _missing_claims(steps)
        if not may_go_on:
            return [living], False, False
    surplus = _next_surplus(snapshot, slots, condemned, now) if condemned else ()
    near = condemned[: pods_with_claims(snapshot.set)]
    return [living, _condemned_claims(snapshot, near), surplus], not condemned, False


def _ordered_slot(snapshot: Snapshot, slot: Slot, now: datetime) -> tuple[tuple[Step, ...], bool]:
    pod = slot.pod
    if pod is None or is_terminal(pod):
        return _steps(snapshot, slot), False
    if pod.deleting or not _available(snapshot, pod, now):
        return _pending(snapshot, slot, pod), False
    return _steps(snapshot, slot), True


def _available(snapshot: Snapshot, pod: Pod, now: datetime) -> bool:
    """Whether the pod is running, and ready for minReadySeconds."""
    return pod.status.phase == "Running" and is_available(pod, snapshot.set.spec.min_ready_seconds, now)


def _next_surplus(snapshot: Snapshot, slots: Sequence[Slot], condemned: Sequence[Pod], now: datetime) -> Groups:
    """The deletion of the surplus pod with the highest ordinal. Empty if it is being deleted already, or if it is
    unavailable and another unavailable pod comes first."""
    highest = condemned[0]
    if highest.deleting:
        return ()
    if not _available(snapshot, highest, now) and highest is not _first_unavailable(snapshot, slots, condemned, now):
        return ()
    return ((_surplus_deletion(snapshot.set, highest),),)


def _first_unavailable(
    snapshot: Snapshot, slots: Sequence[Slot], condemned: Sequence[Pod], now: datetime
) -> Pod | None:
    """The first unavailable pod: wanted ones by ordinal, then surplus ones from the lowest ordinal up."""
    for pod in [*(slot.pod for slot in slots), *reversed(condemned)]:
        if pod is None or pod.deleting or not is_available(pod, snapshot.set.spec.min_ready_seconds, now):
            return pod
    return None


# -- all at once


def _all_at_once(snapshot: Snapshot, slots: Sequence[Slot], condemned: Sequence[Pod]) -> tuple[list[Groups], bool]:
    """The steps, and whether later pods are left to the next sync."""
    living: list[tuple[Step, ...]] = []
    missing = 0
    cut_short = False
    for slot in slots:
        cut_short = enough_claims(missing)
        if cut_short:
            break
        steps = _steps(snapshot, slot)
        if steps:
            living.append(steps)
            missing += _missing_claims(steps)
    most = pods_with_claims(snapshot.set)
    near = condemned if len(condemned) <= most else sorted(condemned, key=lambda pod: pod.deleting)[:most]
    claims = {group[0].pod.uid: group for group in _condemned_claims(snapshot, near)}
    deletions = {pod.uid: (_surplus_deletion(snapshot.set, pod),) for pod in near if not pod.deleting}
    surplus = ((*claims.get(pod.uid, ()), *deletions.get(pod.uid, ())) for pod in near)
    return [living, [steps for steps in surplus if steps]], cut_short


# -- the steps of one pod


def _steps(snapshot: Snapshot, slot: Slot) -> tuple[Step, ...]:
    """The steps for a wanted pod, regardless of other pods."""
    pod = slot.pod
    if pod is None:
        return _creation(snapshot, slot)
    if is_terminal(pod):
        if pod.deleting or pod.uid in snapshot.waiting:
            return ()
        return (DeletePod(pod, f"pod has {pod.status.phase.lower()}"),)
    pending = _pending(snapshot, slot, pod)
    updates = _updated(snapshot, slot, pod, owners_done=bool(pending))
    return pending + updates


def _missing_claims(steps: Sequence[Step]) -> int:
    """The number of claims that the steps create."""
    return sum(len(step.claims.missing) for step in steps if isinstance(step, CreatePod | CreateClaims | UpdatePod))


def _creation(snapshot: Snapshot, slot: Slot) -> tuple[Step, ...]:
    set_, ordinal = snapshot.set, as_read(slot.ordinal)
    if blocked_by_stale_claim(set_, ordinal, snapshot.claims):
        return ()
    body = new_pod(set_, ordinal, new_revision(snapshot, slot.ordinal))
    return (CreatePod(pod_name(set_, ordinal), body, claim_work(set_, ordinal, "", snapshot.claims)),)


def _pending(snapshot: Snapshot, slot: Slot, pod: Pod) -> tuple[Step, ...]:
    if pod.status.phase != "Pending":
        return ()
    work = claim_work(snapshot.set, slot.ordinal, pod.uid, snapshot.claims)
    return () if work.empty else (CreateClaims(pod, work),)


def _updated(snapshot: Snapshot, slot: Slot, pod: Pod, *, owners_done: bool) -> tuple[Step, ...]:
    set_ = snapshot.set
    stored = storage_matches(set_, pod)
    owners: tuple[Ownership, ...] = ()
    if not owners_done:
        found = ownership(set_, slot.ordinal, pod.uid, snapshot.claims)
        owners = found if any(one.references is not None for one in found) else ()
    differs = not (stored and identity_matches(set_, pod))
    if not differs and not owners:
        return ()
    missing, terminating = to_create(set_, slot.ordinal, snapshot.claims) if not stored else ((), ())
    return (UpdatePod(pod, ClaimWork(missing, terminating, owners), differs),)


def _condemned_claims(snapshot: Snapshot, condemned: Sequence[Pod]) -> tuple[tuple[OwnClaims], ...]:
    groups: list[tuple[OwnClaims]] = []
    for pod in condemned:
        owners = ownership(snapshot.set, ordinal_of(pod), pod.uid, snapshot.claims)
        if any(one.references is not None for one in owners):
            groups.append((OwnClaims(pod, owners),))
    return tuple(groups)
