"""The record of a run, and what the runs without perturbation have in common."""

from collections import Counter
from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from kcm_cli.testing.perturb.points import Point, Spot, points_of
from kcm_cli.testing.perturb.random_words import Ties, Words, ties_of
from kcm_cli.testing.perturb.states import State, masked
from kcm_cli.testing.perturb.taken_back import Entry


class Record(msgspec.Struct):
    """The record of a run.

    writes: the operator's successful writes, without those in the quiet time at the end. conflicting: those that
    another client may overtake: with a resourceVersion, or replacing an object of another client. afterwards: those
    after an object that it reads was terminating and then deleted. seen: the changes that its watches show.
    checkpoints: the state after each ``settle`` and at the end. words: the words in it. ties: the words that must be
    equal, in a reference. made: how often each object was created. made_in: the same after each number of checkpoints.
    written: how often the operator changed each object. late: the same in the quiet time. refused: how often each write
    was refused there. taken: entries of objects that the operator removed and restored, with the checkpoint before.
    overwritten: objects of which it removed what another client had written. numbers: the values of each number that
    the operator changes, by object and path. restless: the last activity if nothing settled, in a reference.
    """

    writes: list[Spot] = msgspec.field(default_factory=list)
    conflicting: list[Spot] = msgspec.field(default_factory=list)
    afterwards: list[Spot] = msgspec.field(default_factory=list)
    seen: list[Spot] = msgspec.field(default_factory=list)
    checkpoints: list[State] = msgspec.field(default_factory=list)
    words: list[Words] = msgspec.field(default_factory=list)
    ties: list[Ties] = msgspec.field(default_factory=list)
    written: Counter[str] = msgspec.field(default_factory=Counter)
    made: Counter[str] = msgspec.field(default_factory=Counter)
    made_in: Counter[tuple[int, str]] = msgspec.field(default_factory=Counter)
    late: Counter[str] = msgspec.field(default_factory=Counter)
    refused: Counter[str] = msgspec.field(default_factory=Counter)
    taken: set[tuple[int, str, Entry]] = msgspec.field(default_factory=set)
    overwritten: list[str] = msgspec.field(default_factory=list)
    numbers: dict[tuple[str, Entry], list[float]] = msgspec.field(default_factory=dict)
    restless: set[str] = msgspec.field(default_factory=set)

    def forget_points(self) -> None:
        """Leave out the points so far, as those of the operator's start."""
        for spots in (self.writes, self.conflicting, self.afterwards, self.seen):
            spots.clear()

    def narrowed(self, other: "Record") -> "Record":
        """The same with the points that another run has, too, in its order."""
        lists = ("writes", "conflicting", "afterwards", "seen")
        return replace(self, **{name: _common(getattr(other, name), getattr(self, name)) for name in lists})

    def points(self, kinds: Sequence[str], most: int) -> list[Point]:
        """The points of the run. See ``points.points_of``."""
        return points_of(self.writes, self.conflicting, self.afterwards, self.seen, kinds, most)


def reference_of(first: Record, second: Record) -> Record:
    """The common part of two runs without perturbation. Points are those that both have, in the order of the first."""
    merged = Record(
        made=first.made | second.made, late=first.late | second.late, written=first.written | second.written
    )
    merged.refused = first.refused | second.refused
    merged.made_in = first.made_in | second.made_in
    merged.taken, merged.restless = first.taken | second.taken, first.restless | second.restless
    merged.numbers = {key: steps for key, steps in first.numbers.items() if second.numbers.get(key) == steps}
    merged.writes = _common(first.writes, second.writes)
    merged.conflicting = _common(first.conflicting, second.conflicting)
    merged.afterwards = _common(first.afterwards, second.afterwards)
    merged.seen = _common(first.seen, second.seen)
    merged.ties = [ties_of(*pair) for pair in zip(first.words, second.words, strict=False)]
    merged.checkpoints = [masked(*pair) for pair in zip(first.checkpoints, second.checkpoints, strict=False)]
    return merged


def references(run: Callable[[], Record]) -> Record:
    """Run without perturbation until two runs in a row have the same writes, at most four times. Returns the common
    part of the last two."""
    first, second = run(), run()
    for _ in range(2):
        if set(first.writes) == set(second.writes):
            break
        first, second = second, run()
    return reference_of(first, second)


def _common(first: Sequence[Spot], second: Sequence[Spot]) -> list[Spot]:
    known = set(second)
    return [spot for spot in first if spot in known]
