"""Classifies the pods of a Job once, for all rules, and chooses those to delete when there are too many.

upstream: pkg/controller/job/indexed_job_utils.go, tracking_utils.go, pkg/controller/controller_utils.go#ActivePods
"""

from collections.abc import Iterable, Sequence

import msgspec

from kcm_cli.api.batch import Job
from kcm_cli.api.core import Pod
from kcm_cli.controllers.job.plan import spec
from kcm_cli.machinery.integers import parse_int64
from kcm_cli.machinery.times import parse_time
from kcm_cli.planning.pods import PHASES, is_active, is_ready, is_terminating, ready_since, restarts

UNKNOWN = -1
MAX_GENERATED_PREFIX = 58
_MAX_INT32 = 2**31 - 1
_NO_TIME = (0, 0.0)


class JobPod(msgspec.Struct, frozen=True, gc=False):
    """A pod of a Job, classified. A struct, since a sync creates one for every pod.

    index: the completion index; UNKNOWN without a valid annotation. tracked: it has the tracking finalizer. valid: its
    index is below spec.completions, or the Job is not Indexed. ready: only if it is active. failed: it counts as
    failed, by its phase or because it is being deleted.
    """

    pod: Pod
    index: int
    tracked: bool
    valid: bool
    active: bool
    ready: bool
    terminating: bool
    succeeded: bool
    failed: bool


def job_pods_of(job: Job, pods: Iterable[Pod], features: spec.Features = spec.ALL) -> tuple[JobPod, ...]:
    """The pods in the given order, each of which is looked at alone: a part of them gives a part of the result."""
    indexed = spec.is_indexed(job)
    completions = spec.completions(job)
    only_ended = spec.replaces_only_failed(job, features)
    result = []
    for pod in pods:
        index = completion_index(job, pod) if indexed else UNKNOWN
        active = is_active(pod)
        result.append(
            JobPod(
                pod=pod,
                index=index,
                tracked=has_finalizer(pod),
                valid=not indexed or 0 <= index < completions,
                active=active,
                ready=active and is_ready(pod),
                terminating=is_terminating(pod),
                succeeded=pod.status.phase == "Succeeded",
                failed=_failed(pod, only_ended=only_ended),
            )
        )
    return tuple(result)


def has_finalizer(pod: Pod) -> bool:
    return spec.TRACKING_FINALIZER in pod.metadata.finalizers


def _failed(pod: Pod, *, only_ended: bool) -> bool:
    """Whether the pod counts as failed. A pod that is being deleted may never reach the phase Failed, so it counts
    unless ``only_ended``: only pods that have ended are replaced."""
    phase = pod.status.phase
    return phase == "Failed" or (not only_ended and pod.deleting and phase != "Succeeded")


def name_prefix(job: str, index: int) -> str:
    """The generateName of an index's pod, such as ``job-7-``. A long Job name is cut."""
    suffix = f"-{index}-"
    return job[: MAX_GENERATED_PREFIX - len(suffix)] + suffix


def completion_index(job: Job, pod: Pod) -> int:
    """The index in the name of a pod that the controller has named, since anyone may change annotations; else the value
    of the annotation, and UNKNOWN if that is absent, not a number, or negative."""
    parent, _, _ = pod.name.rpartition("-")
    number = parse_int64(parent.rpartition("-")[2])
    if number is not None and number >= 0 and name_prefix(job.name, number) == f"{parent}-":
        return number
    number = parse_int64(pod.annotations.get(spec.COMPLETION_INDEX, ""))
    return UNKNOWN if number is None else max(number, UNKNOWN)


def failure_counts(pod: Pod) -> tuple[int, int]:
    """The earlier failures of the pod's index: those that counted, and those that the pod failure policy ignored."""
    annotations = pod.annotations
    return _count(annotations.get(spec.INDEX_FAILURES)), _count(annotations.get(spec.INDEX_IGNORED_FAILURES))


def _count(text: str | None) -> int:
    """A non-negative int32; 0 for any other text."""
    value = parse_int64(text or "")
    return value if value is not None and 0 <= value <= _MAX_INT32 else 0


# -- surplus pods


def surplus(active: Sequence[JobPod], at_least: int, *, indexed: bool) -> list[JobPod]:
    """At least ``at_least`` pods to delete, those with least progress first.

    For an Indexed Job they include all pods that repeat an index or have an invalid one.
    """
    if not indexed:
        return sorted(active, key=_progress)[:at_least] if at_least else []
    if not at_least and len({job_pod.index for job_pod in active if job_pod.valid}) == len(active):
        return []  # as nearly always: each valid index once
    going, staying = _duplicates(active)
    if len(going) < at_least:
        going += sorted(staying, key=_progress)[: at_least - len(going)]
    return going


def _duplicates(active: Sequence[JobPod]) -> tuple[list[JobPod], list[JobPod]]:
    by_index: dict[int, list[JobPod]] = {}
    going: list[JobPod] = []
    for job_pod in active:
        if job_pod.valid:
            by_index.setdefault(job_pod.index, []).append(job_pod)
        else:
            going.append(job_pod)
    staying: list[JobPod] = []
    for index in sorted(by_index):
        repeated = by_index[index]
        if len(repeated) > 1:
            repeated.sort(key=_progress)
        going += repeated[:-1]
        staying.append(repeated[-1])
    return going, staying


def _progress(job_pod: JobPod) -> tuple[object, ...]:
    """The sort key; smaller is deleted first: unassigned, pending, not ready, ready for a shorter time, more restarts,
    younger."""
    pod = job_pod.pod
    ready = is_ready(pod)
    regular, sidecar = restarts(pod)
    return (
        bool(pod.spec.node_name),
        PHASES.get(pod.status.phase, 0),
        ready,
        _age(ready_since(pod)) if ready else _NO_TIME,
        -regular,
        -sidecar,
        _age(pod.metadata.creation_timestamp),
        pod.name,
        pod.uid,
    )


def _age(since: str | None) -> tuple[int, float]:
    """The sort key of a time: later is smaller, and no time is smallest."""
    return _NO_TIME if since is None else (1, -parse_time(since).timestamp())
