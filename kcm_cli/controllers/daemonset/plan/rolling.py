"""The rolling update: deletes pods of old revisions, and decides where a new pod may start beside an old one.

Pods that are being deleted do not count, so that an update makes progress while nodes are down.

upstream: pkg/controller/daemon/update.go#rollingUpdate
"""

from collections.abc import Iterator
from datetime import datetime
from itertools import chain

import msgspec

from kcm_cli.api.core import Pod
from kcm_cli.controllers.daemonset.plan.budget import surge_and_unavailable
from kcm_cli.controllers.daemonset.plan.place import Changes, Snapshot
from kcm_cli.controllers.daemonset.plan.pod import is_updated, template_generation
from kcm_cli.planning.pods import is_available


def roll(snapshot: Snapshot, now: datetime) -> Changes:
    """The next step of the update. Raises FormatError for an invalid maxSurge or maxUnavailable."""
    desired = sum(fit.runs for fit in snapshot.fits.values())
    surge, unavailable = surge_and_unavailable(snapshot.daemon_set, desired)
    generation = template_generation(snapshot.daemon_set)
    pods = chain.from_iterable(snapshot.pods.values())
    if all(pod.deleting or is_updated(pod, snapshot.hash, generation) for pod in pods):
        return Changes()  # most syncs: no update is under way
    nodes = tuple(_nodes(snapshot, generation, now))
    return _surging(nodes, surge, desired) if surge else _replacing(nodes, unavailable)


class _Node(msgspec.Struct, frozen=True):
    """The old and the new pod of a node, without pods that are being deleted.

    crowded: there is more than one old or new pod; then neither is set. runs: whether the node should have a pod; None
    if the node does not exist.
    """

    name: str
    runs: bool | None
    old: Pod | None = None
    new: Pod | None = None
    old_available: bool = False
    new_available: bool = False
    crowded: bool = False


def _nodes(snapshot: Snapshot, generation: str | None, now: datetime) -> Iterator[_Node]:
    """The nodes that have pods or should have one, sorted by name."""
    wanted = {name for name, fit in snapshot.fits.items() if fit.runs}
    min_ready_s = snapshot.daemon_set.spec.min_ready_seconds
    for name in sorted(wanted | snapshot.pods.keys()):
        fit = snapshot.fits.get(name)
        runs = fit.runs if fit is not None else None
        old: list[Pod] = []
        new: list[Pod] = []
        for pod in snapshot.pods.get(name, ()):
            if not pod.deleting:
                (new if is_updated(pod, snapshot.hash, generation) else old).append(pod)
        if len(old) > 1 or len(new) > 1:
            yield _Node(name, runs, crowded=True)
            continue
        yield _Node(
            name,
            runs,
            old[0] if old else None,
            new[0] if new else None,
            bool(old) and is_available(old[0], min_ready_s, now),
            bool(new) and is_available(new[0], min_ready_s, now),
        )


def _replacing(nodes: tuple[_Node, ...], max_unavailable: int) -> Changes:
    """Delete old pods: all unavailable ones, and available ones within maxUnavailable."""
    unavailable = 0
    broken: list[Pod] = []
    candidates: list[Pod] = []
    for node in nodes:
        if (node.old is None) == (node.new is None):
            unavailable += 1  # the next sync creates or deletes a pod here
        elif node.old is None:
            unavailable += not node.new_available
        elif not node.old_available:
            broken.append(node.old)
            unavailable += 1
        else:
            candidates.append(node.old)
    return Changes(delete=broken + candidates[: max(0, max_unavailable - unavailable)])


class _Surge(msgspec.Struct):
    """The counts and candidates for an update with maxSurge."""

    surging: int = 0
    available: int = 0
    replaced: list[Pod] = msgspec.field(default_factory=list)
    leaving: list[Pod] = msgspec.field(default_factory=list)
    at_once: list[str] = msgspec.field(default_factory=list)
    candidates: list[str] = msgspec.field(default_factory=list)


def _surging(nodes: tuple[_Node, ...], max_surge: int, desired: int) -> Changes:
    """Start new pods beside old ones. An old pod is deleted when the new one is available.

    Old pods on nodes that should have none are deleted only while enough other pods are available.
    """
    found = _Surge()
    for node in nodes:
        found.surging += node.crowded
        found.available += node.old_available if node.old is not None else node.new_available
        if node.old is not None:
            _surge_on(node, node.old, found)
    spare = max(0, found.available - desired)
    room = max(0, max_surge - found.surging)
    return Changes(
        create=found.at_once + found.candidates[:room],
        delete=found.replaced + found.leaving[:spare],
    )


def _surge_on(node: _Node, old: Pod, found: _Surge) -> None:
    if node.new is not None:
        if node.new_available:
            found.replaced.append(old)
        else:
            found.surging += 1
    elif node.runs is None:
        pass  # the node was deleted: the pod garbage collector deletes its pods
    elif not node.old_available:
        if node.runs:
            found.at_once.append(node.name)
        else:
            found.replaced.append(old)
    elif node.runs:
        found.candidates.append(node.name)
    else:
        found.leaving.append(old)
