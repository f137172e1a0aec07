"""How ended pods get into the counters, exactly once, and how a Job is declared over.

Expected flow: ``track`` notes the uids of ended pods in status.uncountedTerminatedPods (succeeded indexes directly in
completedIndexes) and announces the verdict; once that status is stored, the finalizers of these pods are removed;
``counted`` moves the uids whose finalizer is gone into the counters; ``finished`` adds the final condition when
nothing is uncounted and nothing terminates any more. A sync that breaks off anywhere is continued by the next one.

upstream: pkg/controller/job/job_controller.go#trackJobStatusAndRemoveFinalizers
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from kcm_cli.api.batch import Job, JobStatus, Uncounted
from kcm_cli.api.core import Condition, Pod
from kcm_cli.controllers.job.plan import failure_policy, names, spec
from kcm_cli.controllers.job.plan.assess import NO_UNCOUNTED, Assessment
from kcm_cli.controllers.job.plan.conditions import condition, ensured
from kcm_cli.controllers.job.plan.facts import Facts
from kcm_cli.controllers.job.plan.features import Features
from kcm_cli.planning.conditions import is_true
from kcm_cli.planning.jobs import COMPLETE, FAILED


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracking:
    """What the first status write of a sync says, and what is to follow.

    terminating: how many pods the end has to wait for. waiting: uids of pods whose finalizer is still there.
    release: pods whose finalizers may go once the status is stored. final: the condition that ends the Job. full:
    more pods wait than one sync counts. policy_actions: how often the failure policy decided what.
    """

    status: JobStatus
    terminating: int
    waiting: frozenset[str]
    release: tuple[Pod, ...]
    final: Condition | None
    full: bool
    policy_actions: Mapping[str, int]


@dataclass(slots=True)
class _Tally:
    """The pods of one pass."""

    succeeded: list[str]
    failed: list[str]
    indexes: list[int] = field(default_factory=list)
    release: list[Pod] = field(default_factory=list)
    actions: Counter[str] = field(default_factory=Counter)

    def __len__(self) -> int:
        return len(self.succeeded) + len(self.failed) + len(self.indexes)


def track(assessment: Assessment, status: JobStatus, verdict: Condition | None, now: datetime) -> Tracking:
    """Note what has ended. ``status`` has the numbers of this sync; ``verdict`` is given only if it can be acted on."""
    job = assessment.job
    waiting = frozenset(fact.pod.uid for fact in assessment.facts if fact.tracked)
    status = counted(status, waiting)
    tally = _tally(assessment, status, verdict)
    uncounted = Uncounted(tuple(tally.succeeded), tuple(tally.failed))
    status = msgspec.structs.replace(status, uncounted_terminated_pods=uncounted)
    if spec.is_indexed(job):
        status = _indexed(assessment, status)
    features = assessment.snapshot.features
    status, final = _announced(status, verdict, now, features)
    terminating = status.terminating or 0
    if not features.replacement:
        status = msgspec.structs.replace(status, terminating=None)
    return Tracking(
        status=status,
        terminating=terminating if features.delays_end else 0,
        waiting=waiting,
        release=tuple(tally.release),
        final=final,
        full=len(tally) >= names.MAX_UNCOUNTED,
        policy_actions=tally.actions,
    )


def counted(status: JobStatus, waiting: frozenset[str]) -> JobStatus:
    """Uncounted pods whose finalizers are gone are counted; the same object if there are none."""
    uncounted = status.uncounted_terminated_pods or NO_UNCOUNTED
    succeeded = tuple(uid for uid in uncounted.succeeded if uid in waiting)
    failed = tuple(uid for uid in uncounted.failed if uid in waiting)
    more = len(uncounted.succeeded) - len(succeeded)
    more_failed = len(uncounted.failed) - len(failed)
    if not more and not more_failed:
        return status
    return msgspec.structs.replace(
        status,
        succeeded=status.succeeded + more,
        failed=status.failed + more_failed,
        uncounted_terminated_pods=Uncounted(succeeded, failed),
    )


def finished(tracking: Tracking, status: JobStatus, now: datetime) -> JobStatus | None:
    """The status with the final condition; None while a pod is uncounted or terminating, or the Job goes on."""
    final = tracking.final
    uncounted = status.uncounted_terminated_pods or NO_UNCOUNTED
    if final is None or tracking.full or uncounted != NO_UNCOUNTED or tracking.terminating:
        return None
    conditions = ensured(status.conditions, condition(final.type, final.reason, final.message, now))
    ended = final.last_transition_time if final.type == COMPLETE else status.completion_time
    return msgspec.structs.replace(status, conditions=conditions, completion_time=ended)


def _tally(assessment: Assessment, status: JobStatus, verdict: Condition | None) -> _Tally:
    uncounted = status.uncounted_terminated_pods or NO_UNCOUNTED
    known_succeeded, known_failed = set(assessment.uncounted.succeeded), set(assessment.uncounted.failed)
    tally = _Tally(list(uncounted.succeeded), list(uncounted.failed))
    failing = verdict is not None and verdict.type != names.SUCCESS_CRITERIA_MET
    for fact in _ordered(assessment):
        if not fact.tracked or not _may_go(assessment, fact, over=verdict is not None):
            continue
        uid = fact.pod.uid
        tally.release.append(fact.pod)
        if fact.succeeded and uid not in known_failed:
            _note_success(assessment, tally, fact, known=uid in known_succeeded)
        elif (fact.failed or failing) and fact.valid and uid not in known_failed:
            _note_failure(assessment.job, tally, fact.pod)
        if len(tally) >= names.MAX_UNCOUNTED:
            break
    return tally


def _note_success(assessment: Assessment, tally: _Tally, fact: Facts, *, known: bool) -> None:
    """An index is noted once, in the completed indexes; pods without one by their uid."""
    if not spec.is_indexed(assessment.job):
        if not known:
            tally.succeeded.append(fact.pod.uid)
    elif fact.valid and fact.index not in assessment.succeeded_before:
        tally.indexes.append(fact.index)


def _note_failure(job: Job, tally: _Tally, pod: Pod) -> None:
    match = failure_policy.match(job.spec.pod_failure_policy, pod)
    if match.action is not None:
        tally.actions[match.action] += 1
    if match.counts:
        tally.failed.append(pod.uid)


def _ordered(assessment: Assessment) -> Iterable[Facts]:
    """Lower indexes are counted first."""
    if not spec.is_indexed(assessment.job):
        return assessment.facts
    return sorted(assessment.facts, key=lambda fact: fact.index)


def _may_go(assessment: Assessment, fact: Facts, *, over: bool) -> bool:
    """Whether the finalizer may be removed: the pod has succeeded, the Job is over or being deleted, or the pod has
    failed and is not needed to tell its successor how often the index has failed."""
    if over or fact.succeeded or assessment.job.deleting:
        return True
    if not fact.failed:
        return False
    delayed = assessment.delayed.get(fact.index)
    return delayed is None or delayed.pod.uid != fact.pod.uid


def _indexed(assessment: Assessment, status: JobStatus) -> JobStatus:
    failed = assessment.failed_indexes
    return msgspec.structs.replace(
        status,
        succeeded=assessment.succeeded_indexes.total,
        completed_indexes=assessment.succeeded_indexes.text,
        failed_indexes=None if failed is None else failed.text,
    )


def _announced(
    status: JobStatus, verdict: Condition | None, now: datetime, features: Features
) -> tuple[JobStatus, Condition | None]:
    """The status with the interim condition, which is stored before finalizers go, and the final condition."""
    if verdict is None:
        return status, None
    by_policy = verdict.reason in (names.POD_FAILURE_POLICY, names.SUCCESS_POLICY)
    interim = verdict.type in (names.FAILURE_TARGET, names.SUCCESS_CRITERIA_MET)
    if interim and (by_policy or features.delays_end) and not is_true(status.conditions, verdict.type):
        status = msgspec.structs.replace(status, conditions=(*status.conditions, verdict))
    type_ = COMPLETE if verdict.type == names.SUCCESS_CRITERIA_MET else FAILED
    return status, condition(type_, verdict.reason, verdict.message, now)
