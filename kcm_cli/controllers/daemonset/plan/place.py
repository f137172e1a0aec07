"""Places one daemon pod on each eligible node, and none on the others.

upstream: pkg/controller/daemon/daemon_controller.go#podsShouldBeOnNode
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime

import msgspec

from kcm_cli.api.apps import DAEMON_SETS, DaemonSet
from kcm_cli.api.core import Pod
from kcm_cli.controllers.daemonset.plan.budget import allows_surge
from kcm_cli.controllers.daemonset.plan.placement import Fit
from kcm_cli.machinery.kref import kobj
from kcm_cli.planning.actions import Notice, Remark, ref_to
from kcm_cli.planning.pods import is_available, is_ready, is_terminal
from kcm_cli.planning.revisions import POD_HASH_LABEL


class Snapshot(msgspec.Struct, frozen=True):
    """A DaemonSet, the fit of each node, and its pods by node.

    hash: the hash of the current revision. backoff: nodes on which a failed pod may not be deleted yet, with the
    seconds to wait. pods: without terminal pods that are being deleted. unseen: nodes that exist, but could not be
    decoded.
    """

    daemon_set: DaemonSet
    fits: Mapping[str, Fit]
    pods: Mapping[str, Sequence[Pod]]
    hash: str
    backoff: Mapping[str, float]
    unseen: Collection[str] = ()


class Changes(msgspec.Struct):
    """The changes to make. ``create``: names of nodes. ``failed``: nodes whose failed pods are deleted now.
    ``retry_s``: seconds until other failed pods may be deleted."""

    create: list[str] = msgspec.field(default_factory=list)
    delete: list[Pod] = msgspec.field(default_factory=list)
    notices: list[Notice] = msgspec.field(default_factory=list)
    failed: list[str] = msgspec.field(default_factory=list)
    retry_s: float | None = None

    @property
    def empty(self) -> bool:
        return not (self.create or self.delete)


def place(snapshot: Snapshot, now: datetime) -> Changes:
    """Decide which pods to create (as names of nodes) and to delete."""
    changes = Changes()
    surging = allows_surge(snapshot.daemon_set)
    for name, fit in snapshot.fits.items():
        pods = snapshot.pods.get(name)
        if pods is None:
            if fit.runs:
                changes.create.append(name)
        elif fit.keeps and len(pods) == 1 and not pods[0].deleting and not is_terminal(pods[0]):
            continue  # as on almost all nodes
        elif fit.keeps:
            running = [pod for pod in pods if not pod.deleting and not _ended(snapshot, name, pod, changes)]
            if surging:
                _surged(snapshot, name, fit, running, now, changes)
            elif len(running) > 1:
                changes.delete += oldest_first(running)[1:]
        else:
            changes.delete += [pod for pod in pods if not pod.deleting]
    changes.delete += _lost(snapshot)
    changes.create.sort()
    return changes


def reason(pod: Pod, fit: Fit | None) -> str:
    """Why ``place`` deletes a pod. ``fit``: of its node; None if that is gone."""
    phase = pod.status.phase
    if phase in ("Failed", "Succeeded"):
        return f"pod has {phase.lower()}"
    if fit is None:
        return "its node is gone"
    return "node has another one" if fit.keeps else "node should not run it"


def remarks(changes: Changes) -> Iterator[Remark]:
    """What upstream logs about pods that have ended, at verbosity 2."""
    for pod in changes.delete:
        fields = {"pod": kobj(pod), "node": pod.spec.node_name}
        if pod.status.phase == "Failed":
            yield Remark("Found failed daemon pod on node, will try to kill it", fields)
        elif pod.status.phase == "Succeeded":
            yield Remark("Found succeeded daemon pod on node, will try to delete it", fields)


def oldest_first(pods: Sequence[Pod]) -> list[Pod]:
    """The pods in order: scheduled ones first, then by age, then by name."""
    return sorted(pods, key=lambda pod: (not pod.spec.node_name, pod.metadata.creation_timestamp or "", pod.name))


def _ended(snapshot: Snapshot, node: str, pod: Pod, changes: Changes) -> bool:
    """Whether the pod has ended. It is deleted; a failed pod only when its node's backoff is over."""
    phase = pod.status.phase
    ref = ref_to(DAEMON_SETS, snapshot.daemon_set)
    if phase == "Succeeded":
        text = f"Found succeeded daemon pod {pod.key} on node {node}, will try to delete it"
        changes.notices.append(Notice(ref, "Normal", "SucceededDaemonPod", text))
        changes.delete.append(pod)
        return True
    if phase != "Failed":
        return False
    delay = snapshot.backoff.get(node)
    if delay is not None:
        changes.retry_s = delay if changes.retry_s is None else min(changes.retry_s, delay)
    elif node not in changes.failed[-1:]:
        text = f"Found failed daemon pod {pod.key} on node {node}, will try to kill it"
        changes.notices.append(Notice(ref, "Warning", "FailedDaemonPod", text))
        changes.failed.append(node)
        changes.delete.append(pod)
    return True


def _surged(snapshot: Snapshot, node: str, fit: Fit, running: Sequence[Pod], now: datetime, changes: Changes) -> None:
    """Decide about a node where maxSurge allows two pods: an old one that is ready, and a new one that is not available
    yet. While a failed pod waits for its backoff, there is none beside it: a node that refuses pods would be flooded.
    """
    if len(running) <= 1:
        if not running and fit.runs and node not in snapshot.backoff:
            changes.create.append(node)
        return
    new: Pod | None = None
    old: Pod | None = None
    for pod in oldest_first(running):
        if pod.labels.get(POD_HASH_LABEL) == snapshot.hash:
            if new is None:
                new = pod
                continue
        elif old is None:
            old = pod
            continue
        changes.delete.append(pod)
    if new is None or old is None:
        return
    if not is_ready(old) or is_available(new, snapshot.daemon_set.spec.min_ready_seconds, now):
        changes.delete.append(old)


def _lost(snapshot: Snapshot) -> list[Pod]:
    """Unscheduled pods for nodes that do not exist. Neither the scheduler nor the pod garbage collector handles
    them."""
    known, unseen = snapshot.fits, snapshot.unseen
    elsewhere = (pods for name, pods in snapshot.pods.items() if name not in known and name not in unseen)
    return [pod for pods in elsewhere for pod in pods if not pod.spec.node_name and not pod.deleting]
