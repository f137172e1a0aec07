"""Classifies the pods of a Job once, for all rules.

upstream: pkg/controller/job/indexed_job_utils.go, tracking_utils.go
"""

from collections.abc import Iterable

import msgspec

from kcm_cli.api.batch import Job
from kcm_cli.api.core import Pod
from kcm_cli.controllers.job.plan import names, spec
from kcm_cli.machinery.integers import parse_int64
from kcm_cli.planning.pods import is_active

UNKNOWN = -1
_MAX_INT32 = 2**31 - 1


class JobPod(msgspec.Struct, frozen=True, gc=False):
    """A pod of a Job. A struct, since a sync creates one for every pod.

    index: the completion index; UNKNOWN without a valid annotation. tracked: it has the tracking finalizer. valid: its
    index is below spec.completions, or the Job is not Indexed. failed: it counts as failed, by its phase or because it
    is being deleted.
    """

    pod: Pod
    index: int
    tracked: bool
    valid: bool
    active: bool
    succeeded: bool
    failed: bool


def job_pods_of(job: Job, pods: Iterable[Pod], *, only_ended: bool) -> tuple[JobPod, ...]:
    """The pods in the given order. ``only_ended``: a pod that is being deleted does not count as failed yet."""
    indexed = spec.is_indexed(job)
    completions = spec.completions(job)
    result = []
    for pod in pods:
        index = completion_index(pod) if indexed else UNKNOWN
        result.append(
            JobPod(
                pod=pod,
                index=index,
                tracked=has_finalizer(pod),
                valid=not indexed or 0 <= index < completions,
                active=is_active(pod),
                succeeded=pod.status.phase == "Succeeded",
                failed=_failed(pod, only_ended=only_ended),
            )
        )
    return tuple(result)


def has_finalizer(pod: Pod) -> bool:
    return names.TRACKING_FINALIZER in pod.metadata.finalizers


def _failed(pod: Pod, *, only_ended: bool) -> bool:
    """Whether the pod counts as failed. A pod that is being deleted may never reach the phase Failed, so it counts
    unless ``only_ended``."""
    phase = pod.status.phase
    return phase == "Failed" or (not only_ended and pod.deleting and phase != "Succeeded")


def completion_index(pod: Pod) -> int:
    """The value of the annotation; UNKNOWN if it is absent, not a number, or negative."""
    text = pod.annotations.get(names.COMPLETION_INDEX, "")
    number = parse_int64(text)
    return UNKNOWN if number is None else max(number, UNKNOWN)


def failure_counts(pod: Pod) -> tuple[int, int]:
    """The earlier failures of the pod's index: those that counted, and those that the pod failure policy ignored."""
    annotations = pod.annotations
    return _count(annotations.get(names.INDEX_FAILURES)), _count(annotations.get(names.INDEX_IGNORED_FAILURES))


def _count(text: str | None) -> int:
    """A non-negative int32; 0 for any other text."""
    value = parse_int64(text or "")
    return value if value is not None and 0 <= value <= _MAX_INT32 else 0
