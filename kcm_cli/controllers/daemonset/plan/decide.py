"""The plan of one sync: place pods on the right nodes first; when nothing is left to place, continue the rolling
update.

upstream: pkg/controller/daemon/daemon_controller.go#updateDaemonSet, syncNodes
"""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from kcm_cli.api.apps import DAEMON_SETS, DaemonSet
from kcm_cli.api.core import Pod
from kcm_cli.controllers.daemonset.plan.budget import ROLLING_UPDATE
from kcm_cli.controllers.daemonset.plan.place import Changes, Snapshot, place
from kcm_cli.controllers.daemonset.plan.pod import PodBodies
from kcm_cli.controllers.daemonset.plan.rolling import roll
from kcm_cli.planning.actions import Create, Delete, Expect, Mode, Notice, Stage, ref_to
from kcm_cli.planning.pod_control import create_pod, delete_pod

BURST = 250
"""The maximum number of pods that one sync creates, and of those that it deletes."""


class DaemonSetPlan(msgspec.Struct, frozen=True):
    """The plan of one sync. All stages are executed, even after one that failed.

    failed: nodes whose backoff for failed pods starts or grows. retry_s: seconds until a failed pod may be deleted.
    """

    stages: tuple[Stage, ...] = ()
    notices: tuple[Notice, ...] = ()
    failed: tuple[str, ...] = ()
    retry_s: float | None = None


def plan(snapshot: Snapshot, now: datetime) -> DaemonSetPlan:
    """Decide which pods to create and delete. Raises FormatError for an invalid maxSurge or maxUnavailable."""
    daemon_set = snapshot.daemon_set
    changes = place(snapshot, now)
    pods = changes
    if changes.empty and daemon_set.spec.update_strategy.type == ROLLING_UPDATE:
        pods = roll(snapshot, now)
    stages = _stages(daemon_set, snapshot.hash, pods)
    return DaemonSetPlan(stages, tuple(changes.notices), tuple(changes.failed), changes.retry_s)


def _stages(daemon_set: DaemonSet, hash_: str, changes: Changes) -> tuple[Stage, ...]:
    """A stage with creations in growing batches, and one with all deletions in parallel."""
    key = daemon_set.key
    creations = _creations(daemon_set, hash_, changes.create[:BURST])
    deletions = _deletions(daemon_set, changes.delete[:BURST])
    deleted = tuple(f"{delete.namespace}/{delete.name}" for delete in deletions)
    found: list[Stage] = []
    if creations:
        found.append(Stage(creations, Mode.SLOW_START, Expect(key, creations=len(creations))))
    if deletions:
        found.append(Stage(deletions, Mode.PARALLEL, Expect(key, deletions=deleted, more=bool(creations))))
    return tuple(found)


def _creations(daemon_set: DaemonSet, hash_: str, nodes: Sequence[str]) -> tuple[Create, ...]:
    if not nodes:
        return ()
    ref, bodies = ref_to(DAEMON_SETS, daemon_set), PodBodies(daemon_set, hash_)
    return tuple(create_pod(ref, daemon_set.namespace, bodies.for_node(node)) for node in nodes)


def _deletions(daemon_set: DaemonSet, pods: Sequence[Pod]) -> tuple[Delete, ...]:
    ref = ref_to(DAEMON_SETS, daemon_set)
    return tuple(delete_pod(ref, pod) for pod in pods)
