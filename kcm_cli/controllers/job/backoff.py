"""The delay before a failed pod is replaced: 10 s after the first failure, doubled with each further one, at most 10
min.

A success resets the count. Without backoffLimitPerIndex a Job has one record, which is kept in memory. With it, each
index has its own count, in the annotations of its pods.

upstream: pkg/controller/job/backoff_utils.go
"""

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from kcm_cli.api.core import ContainerStatus, Pod
from kcm_cli.machinery.times import parse_time, shifted
from kcm_cli.planning.pods import ready_condition

_NEVER = datetime(1, 1, 1, tzinfo=UTC)


class Backoff(msgspec.Struct, frozen=True):
    """The number of failures since the last success, and the time of the last one. upstream: backoffRecord."""

    failures: int = 0
    last_failure: datetime | None = None

    def after(self, succeeded: Sequence[Pod], failed: Sequence[Pod]) -> "Backoff":
        """The record after these pods have ended. Only failures after the last success count."""
        if not succeeded:
            if not failed:
                return self
            return Backoff(self.failures + len(failed), max(finished_at(pod) for pod in failed))
        last_success = max(finished_at(pod) for pod in succeeded)
        later = [ended for pod in failed if (ended := finished_at(pod)) > last_success]
        return Backoff(len(later), max(later, default=None))


FRESH = Backoff()


def finished_at(pod: Pod) -> datetime:
    """The time when a pod ended: the end of its last container. Without one, the time when it became not ready, then
    the time of its deletion, then that of its creation."""
    ended = _containers_ended(pod)
    if ended is not None:
        return ended
    ready = ready_condition(pod)
    if ready is not None and ready.status == "False" and ready.last_transition_time:
        return parse_time(ready.last_transition_time)
    meta = pod.metadata
    if meta.deletion_timestamp is not None:
        return shifted(parse_time(meta.deletion_timestamp), -(meta.deletion_grace_period_seconds or 0))
    return parse_time(meta.creation_timestamp) if meta.creation_timestamp else _NEVER


def _containers_ended(pod: Pod) -> datetime | None:
    """The latest end of a container or sidecar; None if one has not ended. Sidecars that have all ended suffice."""
    ended = _latest(None, pod.status.container_statuses)
    sidecars = {container.name for container in pod.spec.init_containers if container.restart_policy == "Always"}
    return _latest(ended, [status for status in pod.status.init_container_statuses if status.name in sidecars])


def _latest(ended: datetime | None, statuses: Sequence[ContainerStatus]) -> datetime | None:
    for status in statuses:
        terminated = status.state.terminated if status.state is not None else None
        if terminated is None or terminated.finished_at is None:
            return None
        moment = parse_time(terminated.finished_at)
        ended = moment if ended is None else max(ended, moment)
    return ended
