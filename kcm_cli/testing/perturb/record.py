"""The record of a run, and what the runs without perturbation have in common."""

from collections import Counter
from collections.abc import Callable

import msgspec

from kcm_cli.testing.perturb.points import Spots
from kcm_cli.testing.perturb.random_words import Ties, Words, ties_of
from kcm_cli.testing.perturb.states import State, masked
from kcm_cli.testing.perturb.taken_back import Entry


class Record(msgspec.Struct):
    """The record of a run.

    spots: where something may go wrong. checkpoints: the state after each ``settle`` and at the end. words: the words
    in it. ties: the words that must be equal, in a reference. made: how often each object was created. made_in: the
    same after each number of checkpoints.
    written: how often the operator changed each object. late: the same in the quiet time. refused: how often each write
    was refused there. taken: entries of objects that the operator removed and restored, with the checkpoint before.
    overwritten: objects of which it removed what another client had written. numbers: the values of each number that
    the operator changes, by object and path. restless: the last activity if nothing settled, in a reference.
    """

    spots: Spots = msgspec.field(default_factory=Spots)
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


def reference_of(first: Record, second: Record) -> Record:
    """The common part of two runs without perturbation. Points are those that both have, in the order of the first."""
    merged = Record(
        made=first.made | second.made, late=first.late | second.late, written=first.written | second.written
    )
    merged.refused = first.refused | second.refused
    merged.made_in = first.made_in | second.made_in
    merged.taken, merged.restless = first.taken | second.taken, first.restless | second.restless
    merged.numbers = {key: steps for key, steps in first.numbers.items() if second.numbers.get(key) == steps}
    merged.spots = first.spots.shared(second.spots)
    merged.ties = [ties_of(*pair) for pair in zip(first.words, second.words, strict=False)]
    merged.checkpoints = [masked(*pair) for pair in zip(first.checkpoints, second.checkpoints, strict=False)]
    return merged


def references(run: Callable[[], Record]) -> Record:
    """Run without perturbation until two runs in a row have the same writes, at most four times. Returns the common
    part of the last two."""
    first, second = run(), run()
    for _ in range(2):
        if set(first.spots.writes) == set(second.spots.writes):
            break
        first, second = second, run()
    return reference_of(first, second)
