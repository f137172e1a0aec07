"""Runs a scenario twice for reference, and once for each point."""

import logging
import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import msgspec

from kcm_cli.component.arguments import checked
from kcm_cli.testing.perturb.points import ALL_KINDS, KINDS, Point
from kcm_cli.testing.perturb.record import Record, references
from kcm_cli.testing.perturb.trial import OperatorTrial, Perturbed, Trial
from kcm_cli.testing.sandbox import Sandbox
from kcm_cli.testing.waiting import decided

Scenario = Callable[[OperatorTrial], object]
"""Starts operators, changes what is in the cluster, and calls ``settle`` after each change."""
MOST = 100
_log = logging.getLogger(__name__)


class TrialResult(msgspec.Struct, frozen=True):
    """The result of a point. story: what happened if the operator failed, else empty.

    came_up: whether the point was reached. If not, nothing was tested. note: the flaw of the operator's framework that
    explains the failure; then ``story`` is empty.
    """

    point: Point
    story: str
    came_up: bool
    note: str = ""


@checked
def perturb(
    sandbox: Sandbox,
    scenario: Scenario,
    *,
    kinds: Sequence[str] = KINDS,
    most: int = MOST,
    only: Sequence[Point] = (),
    enough: int = 0,
) -> list[TrialResult]:
    """Run a scenario at all of its points. Returns the failed ones.

    only: run at these points. enough: stop after this number of failures. Between runs the cluster is reset. Points
    that were not reached are logged as warnings. Raises ValueError for unknown kinds, and errors of the reference runs.
    """
    found: list[TrialResult] = []
    for outcome in each(sandbox, scenario, kinds=kinds, most=most, only=only):
        if not outcome.came_up:
            _log.warning("%s did not come up: nothing was perturbed", outcome.point)
        if outcome.note:
            _log.warning("%s: %s", outcome.point, outcome.note)
        if outcome.story:
            found.append(outcome)
            if enough and len(found) >= enough:
                break
    return found


@checked
def each(
    sandbox: Sandbox,
    scenario: Scenario,
    *,
    kinds: Sequence[str] = KINDS,
    most: int = MOST,
    only: Sequence[Point] = (),
    seed: int | None = None,
) -> Iterator[TrialResult]:
    """Like ``perturb``, but yields the outcome of each run. ``seed``: shuffles the points."""
    if wrong := [kind for kind in kinds if kind not in ALL_KINDS]:
        raise ValueError(f"{', '.join(wrong)}: choose from {', '.join(ALL_KINDS)}")
    base = sandbox.snapshot()

    def run(trial: OperatorTrial) -> Record:
        try:
            decided(scenario(trial))
            if not trial.started:
                raise ValueError("the scenario has started no operator: trial.operator(main)")
            trial.finish()
            return trial.record
        finally:
            trial.stop()
            sandbox.reset(base)

    reference = references(lambda: run(OperatorTrial(sandbox, base)))
    chosen = list(only) or reference.spots.points(kinds, most)
    if seed is not None:
        random.Random(seed).shuffle(chosen)
    for point in chosen:
        trial = OperatorTrial(sandbox, base, "", point, reference)
        yield judged(trial, partial(run, trial))


def judged(trial: Trial, run: Callable[[], object]) -> TrialResult:
    """Run a trial with a perturbation."""
    assert trial.point is not None
    story = note = ""
    try:
        run()
    except Perturbed as error:
        note = error.note
        story = "" if note else str(error)
    return TrialResult(trial.point, story, trial.fired, note)
