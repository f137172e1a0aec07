"""The plan of one sync: place pods on the right nodes first; when nothing is left to place, continue the rolling
update.

upstream: pkg/controller/daemon/daemon_controller.go#updateDaemonSet, syncNodes
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from kcm_cli.api.apps import DAEMON_SETS, DaemonSet
from kcm_cli.api.core import Pod
from kcm_cli.controllers.daemonset.plan.budget import ROLLING_UPDATE
from kcm_cli.controllers.daemonset.plan.place import Changes, Snapshot, place, reason, remarks
from kcm_cli.controllers.daemonset.plan.pod import PodBodies
from kcm_cli.controllers.daemonset.plan.rolling import roll
from kcm_cli.planning.actions import Create, Delete, Expect, Mode, Notice, Plan, Remark, Stage, ref_to, stages
from kcm_cli.planning.pod_control import create_pod, delete_pod

BURST = 250
"""The maximum number of pods that one sync creates, and of those that it deletes."""


class Placement(msgspec.Struct, frozen=True):
    """The decision of one sync.

    failed: nodes whose backoff for failed pods starts or grows. retry_s: seconds until a failed pod may be deleted.
    """

    stages: Plan = ()
    notices: tuple[Notice, ...] = ()
    remarks: tuple[Remark, ...] = ()
    failed: tuple[str, ...] = ()
    retry_s: float | None = None


def plan(snapshot: Snapshot, now: datetime) -> Placement:
    """Decide which pods to create and delete. Raises FormatError for an invalid maxSurge or maxUnavailable."""
    daemon_set = snapshot.daemon_set
    changes = place(snapshot, now)
    pods, why = changes, {}
    if changes.empty and daemon_set.spec.update_strategy.type == ROLLING_UPDATE:
        pods = roll(snapshot, now)
        why = dict.fromkeys((pod.uid for pod in pods.delete), "outdated template")
    said = tuple(remarks(changes))
    return Placement(_stages(snapshot, pods, why), tuple(changes.notices), said, tuple(changes.failed), changes.retry_s)


def _stages(snapshot: Snapshot, changes: Changes, why: Mapping[str, str]) -> Plan:
    """A stage with creations in growing batches, and one with all deletions in parallel."""
    daemon_set = snapshot.daemon_set
    key = daemon_set.key
    creations = _creations(daemon_set, snapshot.hash, changes.create[:BURST])
    deletions = _deletions(snapshot, changes.delete[:BURST], why)
    deleted = tuple(f"{delete.namespace}/{delete.name}" for delete in deletions)
    return stages(
        Stage(creations, Mode.SLOW_START, Expect(key, daemon_set.uid, creations=len(creations))),
        Stage(
            deletions,
            Mode.PARALLEL,
            Expect(key, daemon_set.uid, deletions=deleted, more=bool(creations)),
            anyway=True,
        ),
    )


def _creations(daemon_set: DaemonSet, hash_: str, nodes: Sequence[str]) -> tuple[Create, ...]:
    if not nodes:
        return ()
    ref, bodies = ref_to(DAEMON_SETS, daemon_set), PodBodies(daemon_set, hash_)
    return tuple(
        create_pod(ref, daemon_set.namespace, bodies.for_node(node), f"node {node} has none") for node in nodes
    )


def _deletions(snapshot: Snapshot, pods: Sequence[Pod], why: Mapping[str, str]) -> tuple[Delete, ...]:
    if not pods:
        return ()
    ref = ref_to(DAEMON_SETS, snapshot.daemon_set)
    fits = {pod.uid: snapshot.fits.get(node) for node, on_node in snapshot.pods.items() for pod in on_node}
    return tuple(delete_pod(ref, pod, why.get(pod.uid) or reason(pod, fits.get(pod.uid))) for pod in pods)
