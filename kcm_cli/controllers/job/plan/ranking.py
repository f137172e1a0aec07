"""Chooses the active pods to delete when a Job has too many.

upstream: pkg/controller/controller_utils.go#ActivePods, pkg/controller/job/indexed_job_utils.go
"""

from collections.abc import Sequence

from kcm_cli.controllers.job.plan.pods import JobPod
from kcm_cli.machinery.times import parse_time
from kcm_cli.planning.pods import PHASES, is_ready, ready_since, restarts

_NO_TIME = (0, 0.0)


def surplus(active: Sequence[JobPod], at_least: int, *, indexed: bool) -> list[JobPod]:
    """At least ``at_least`` pods to delete, those with least progress first.

    For an Indexed Job they include all pods that repeat an index or have an invalid one.
    """
    if not indexed:
        return sorted(active, key=_progress)[:at_least] if at_least else []
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
