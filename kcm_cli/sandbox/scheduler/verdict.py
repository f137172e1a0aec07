"""The results of filters and scores, and the message for an unschedulable pod.

upstream: pkg/scheduler/framework/types.go#FitError
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any, TypeVar

import msgspec

from kcm_cli.sandbox.scheduler.devices.views import Claim
from kcm_cli.sandbox.scheduler.node_info import NodeInfo

N = TypeVar("N", int, float)


class Refusal(msgspec.Struct, frozen=True):
    """Why a pod does not fit on a node. ``resolvable``: preemption might help."""

    plugin: str
    reasons: tuple[str, ...]
    resolvable: bool = False


Filter = Callable[[NodeInfo], Refusal | None]
MAX_SCORE = 100


class Scores(msgspec.Struct, frozen=True):
    """A plugin's result for the feasible nodes: ``values`` in their order, and the ``points`` of each value. Thousands
    of nodes have a handful of values."""

    values: Sequence[Hashable]
    points: Mapping[Any, int]


def each_its_own(points: Sequence[int]) -> Scores:
    """Scores with these points for each node."""
    return Scores(points, {value: value for value in set(points)})


def summed(parts: Iterable[tuple[Sequence[Any], Mapping[Any, N]]]) -> list[N]:
    """The sum for each node of at least one part: (the value of each node, the points of each value)."""
    each: Iterable[Iterable[N]] = (map(points.__getitem__, values) for values, points in parts)
    return list(reduce(lambda left, right: map(add, left, right), each))


class FitError(msgspec.Struct, frozen=True):
    """No node is feasible. ``before``: a refusal before any node was checked. ``claims``: the pod has claims. ``away``:
    claims whose devices are on other nodes. ``stale``: a claim that an earlier attempt left."""

    nodes: int
    refusals: Mapping[str, Refusal]
    before: Refusal | None = None
    absent: str = ""
    preemption: str = ""
    claims: bool = False
    away: tuple["Claim", ...] = ()
    stale: "Claim | None" = None

    def message(self) -> str:
        """The text of the PodScheduled condition and of the FailedScheduling event."""
        if self.nodes == 0:
            return "no nodes available to schedule pods"
        text = f"0/{self.nodes} nodes are available:"
        if self.before is not None:
            text += f" {', '.join(self.before.reasons)}."
        else:
            counts = Counter(reason for refusal in self.refusals.values() for reason in refusal.reasons)
            if self.absent and len(self.refusals) < self.nodes:
                counts[self.absent] += self.nodes - len(self.refusals)
            if counts:
                text += f" {', '.join(sorted(f'{count} {reason}' for reason, count in counts.items()))}."
        return f"{text} {self.preemption}" if self.preemption else text

    def plugins(self) -> frozenset[str]:
        """The plugins that refused. Changes that they watch may make the pod schedulable."""
        if self.before is not None:
            return frozenset((self.before.plugin,))
        found = {refusal.plugin for refusal in self.refusals.values()}
        return frozenset(found | {"NodeAffinity"} if self.absent else found)
