"""The time of the change that causes an update of endpoints, from which the delay of the update is measured.

The earliest new time among the Service's creation and its pods' last readiness changes; of several changes of one
object between two syncs only the last is seen. Times are compared as the text that the API server writes.

upstream: staging/src/k8s.io/endpointslice/util/trigger_time_tracker.go
"""

from collections.abc import Iterable, Mapping

import msgspec

from kcm_cli.api.core import Pod, Service
from kcm_cli.planning.pods import ready_condition

ANNOTATION = "endpoints.kubernetes.io/last-change-trigger-time"


class Seen(msgspec.Struct, frozen=True):
    """The times at the last sync of a Service; those of pods by name."""

    service: str = ""
    pods: Mapping[str, str] = msgspec.field(default_factory=dict)


def trigger_time(seen: Seen | None, service: Service, pods: Iterable[Pod]) -> tuple[str, Seen]:
    """The time to write (empty: none), and the times at this sync. ``seen`` is None at a Service's first sync."""
    known = seen.pods if seen is not None else {}
    created = service.metadata.creation_timestamp or ""
    earliest = created if created > (seen.service if seen is not None else "") else ""
    times: dict[str, str] = {}
    for pod in pods:
        condition = ready_condition(pod)
        time = condition.last_transition_time if condition is not None else None
        if not time:
            continue
        times[pod.name] = time
        if time > known.get(pod.name, "") and (not earliest or time < earliest):
            earliest = time
    return created if seen is None else earliest, Seen(created, times)


def annotated(annotations: Mapping[str, str], time: str) -> dict[str, str]:
    """The annotations with this time; without the annotation if it is empty."""
    result = {key: value for key, value in annotations.items() if key != ANNOTATION}
    if time:
        result[ANNOTATION] = time
    return result
