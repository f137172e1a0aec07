"""The status of a DaemonSet.

upstream: pkg/controller/daemon/daemon_controller.go#updateDaemonSetStatus, storeDaemonSetStatus
"""

from datetime import datetime

import msgspec

from kcm_cli.api.apps import DaemonSetStatus
from kcm_cli.controllers.daemonset.plan.place import Snapshot, oldest_first
from kcm_cli.controllers.daemonset.plan.pod import is_updated, template_generation
from kcm_cli.planning.pods import is_available, is_ready


def status(snapshot: Snapshot, now: datetime, *, observed: bool) -> DaemonSetStatus:
    """The counts. ``observed``: whether this sync acted on the present generation."""
    daemon_set = snapshot.daemon_set
    generation = template_generation(daemon_set)
    desired = current = misscheduled = ready = updated = available = 0
    for name, fit in snapshot.fits.items():
        pods = snapshot.pods.get(name)
        if not fit.runs:
            misscheduled += pods is not None
            continue
        desired += 1
        if pods is None:
            continue
        current += 1
        pod = pods[0] if len(pods) == 1 else oldest_first(pods)[0]
        if is_ready(pod):
            ready += 1
            available += is_available(pod, daemon_set.spec.min_ready_seconds, now)
        updated += is_updated(pod, snapshot.hash, generation)
    return msgspec.structs.replace(
        daemon_set.status,
        desired_number_scheduled=desired,
        current_number_scheduled=current,
        number_misscheduled=misscheduled,
        number_ready=ready,
        updated_number_scheduled=updated,
        number_available=available,
        number_unavailable=desired - available,
        observed_generation=daemon_set.metadata.generation if observed else daemon_set.status.observed_generation,
    )
