"""Decides when a pod has to be deleted from a node with NoExecute taints.

upstream: pkg/controller/tainteviction/taint_eviction.go#processPodOnNode
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from kcm_cli.api.core import Node, Pod, Taint, Toleration
from kcm_cli.machinery.times import parse_time
from kcm_cli.planning.conditions import find
from kcm_cli.planning.tolerations import NO_EXECUTE, tolerates

SCHEDULED = "PodScheduled"
SETTLE_S = 60.0
"""For so long no toleration ends after a start: a node that is back has to be seen, and its taints removed."""


def executing(node: Node) -> tuple[Taint, ...]:
    """The node's NoExecute taints."""
    return tuple(taint for taint in node.spec.taints if taint.effect == NO_EXECUTE)


class Leave(msgspec.Struct, frozen=True):
    """The pod is to be deleted after ``after_s`` seconds. ``tolerated``: all taints are tolerated until then.

    since: when the last of the taints that are not tolerated for ever was added; None if one of them does not say.
    """

    after_s: float
    tolerated: bool
    since: str | None = None


def plan(taints: Iterable[Taint], tolerations: Sequence[Toleration], *, comparisons: bool) -> Leave | None:
    """When a pod has to be deleted; None if it may stay.

    comparisons: gate TaintTolerationComparisonOperators.
    """
    limited: list[tuple[int, str | None]] = []
    for taint in taints:
        match = next(
            (toleration for toleration in tolerations if tolerates(toleration, taint, comparisons=comparisons)), None
        )
        if match is None:
            return Leave(0.0, tolerated=False)
        if match.toleration_seconds is not None:
            limited.append((match.toleration_seconds, taint.time_added))
    if not limited:
        return None
    times = [added for _, added in limited if added is not None]
    since = max(times) if len(times) == len(limited) else None
    return Leave(float(max(0, min(seconds for seconds, _ in limited))), tolerated=True, since=since)


def left_s(found: Leave, pod: Pod, now: datetime) -> float:
    """The seconds that are left of a toleration which began before this process: when the taints were added, or the pod
    came. All of them if that is not known, and no fewer than SETTLE_S of them."""
    came = find(pod.status.conditions, SCHEDULED)
    if found.since is None or came is None or came.status != "True" or came.last_transition_time is None:
        return found.after_s
    waited = (now - max(parse_time(found.since), parse_time(came.last_transition_time))).total_seconds()
    return max(found.after_s - max(0.0, waited), min(found.after_s, SETTLE_S))
