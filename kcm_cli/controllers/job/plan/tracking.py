"""Counting of ended pods: each exactly once, whatever a sync breaks off at.

An ended pod has the tracking finalizer until its uid is in status.uncountedTerminatedPods (or its index in
completedIndexes). When that is stored, the finalizer is removed, and ``counted`` moves uids of pods without it into the
counters.

upstream: pkg/controller/job/job_controller.go#trackJobStatusAndRemoveFinalizers
"""

from collections import Counter
from collections.abc import Iterable

import msgspec

from kcm_cli.api.batch import Job, JobStatus, Uncounted
from kcm_cli.api.core import Pod
from kcm_cli.controllers.job.plan import policies, spec
from kcm_cli.controllers.job.plan.pods import JobPod
from kcm_cli.controllers.job.plan.state import NO_UNCOUNTED, JobState


class EndedPods(msgspec.Struct):
    """The ended pods that one sync counts."""

    succeeded: list[str]
    failed: list[str]
    indexes: list[int] = msgspec.field(default_factory=list)
    release: list[Pod] = msgspec.field(default_factory=list)
    actions: Counter[str] = msgspec.field(default_factory=Counter)

    def __len__(self) -> int:
        return len(self.succeeded) + len(self.failed) + len(self.indexes)


def counted(status: JobStatus, waiting: frozenset[str]) -> JobStatus:
    """The status with uncounted pods moved to the counters once their finalizers are removed; the same object if there
    are none."""
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


def ended_pods(state: JobState, status: JobStatus, *, over: bool, failing: bool) -> EndedPods:
    """The ended pods to count. ``over``: the Job ends. ``failing``: it fails, and so do its other pods."""
    uncounted = status.uncounted_terminated_pods or NO_UNCOUNTED
    known_succeeded, known_failed = set(state.uncounted.succeeded), set(state.uncounted.failed)
    noted = known_succeeded | known_failed
    ended = EndedPods(list(uncounted.succeeded), list(uncounted.failed))
    for job_pod in _ordered(state):
        if not job_pod.tracked or not _may_release(state, job_pod, over=over):
            continue
        uid = job_pod.pod.uid
        ended.release.append(job_pod.pod)
        if job_pod.succeeded and uid not in known_failed:
            _note_success(state, ended, job_pod, known=uid in known_succeeded)
        elif (job_pod.failed or failing) and job_pod.valid and uid not in noted:
            _note_failure(state.job, ended, job_pod.pod)
        if len(ended) >= spec.MAX_UNCOUNTED:
            break
    return ended


def _note_success(state: JobState, ended: EndedPods, job_pod: JobPod, *, known: bool) -> None:
    """Note a succeeded pod: by index for an Indexed Job, else by uid."""
    if not spec.is_indexed(state.job):
        if not known:
            ended.succeeded.append(job_pod.pod.uid)
    elif job_pod.valid and job_pod.index not in state.succeeded_before:
        ended.indexes.append(job_pod.index)


def _note_failure(job: Job, ended: EndedPods, pod: Pod) -> None:
    match = policies.match(job.spec.pod_failure_policy, pod)
    if match.action is not None:
        ended.actions[match.action] += 1
    if match.counts:
        ended.failed.append(pod.uid)


def _ordered(state: JobState) -> Iterable[JobPod]:
    """The pods in the order in which they are counted: for an Indexed Job by index."""
    if not spec.is_indexed(state.job):
        return state.pods
    return sorted(state.pods, key=lambda job_pod: job_pod.index)


def _may_release(state: JobState, job_pod: JobPod, *, over: bool) -> bool:
    """Whether the finalizer may be removed: the pod succeeded, the Job ends or is being deleted, or the pod failed and
    its annotations are not needed for its replacement."""
    if over or job_pod.succeeded or state.job.deleting:
        return True
    if not job_pod.failed:
        return False
    delayed = state.delayed.get(job_pod.index)
    return delayed is None or delayed.pod.uid != job_pod.pod.uid
