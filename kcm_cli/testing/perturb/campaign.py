"""All runs of a scenario: two references, then one for each point."""

import random
from collections.abc import Callable, Iterator, Sequence

import msgspec

from kcm_cli.component.arguments import checked
from kcm_cli.sandbox.hosted import HostedSandbox
from kcm_cli.sandbox.waiting import decided
from kcm_cli.testing.perturb.points import ALL_KINDS, KINDS, Point
from kcm_cli.testing.perturb.record import Record, references
from kcm_cli.testing.perturb.trial import Perturbed, Trial

Scenario = Callable[[Trial], object]
"""Starts operators, changes what is in the cluster, and calls ``settle`` after each change."""
MOST = 100


class Finding(msgspec.Struct, frozen=True):
    """What an operator did not stand."""

    point: Point
    story: str


@checked
def perturb(
    sandbox: HostedSandbox,
    scenario: Scenario,
    *,
    kinds: Sequence[str] = KINDS,
    most: int = MOST,
    only: Sequence[Point] = (),
    enough: int = 0,
) -> list[Finding]:
    """Run a scenario at all of its points (``only``: at these); what was found, ``enough`` of it at most.

    Between the runs the cluster is reset to what it was at first. Raises ValueError for kinds that there are not, and
    what the references raise.
    """
    found: list[Finding] = []
    for finding in each(sandbox, scenario, kinds=kinds, most=most, only=only):
        if isinstance(finding, Finding):
            found.append(finding)
            if enough and len(found) >= enough:
                break
    return found


@checked
def each(
    sandbox: HostedSandbox,
    scenario: Scenario,
    *,
    kinds: Sequence[str] = KINDS,
    most: int = MOST,
    only: Sequence[Point] = (),
    seed: int | None = None,
) -> Iterator[Finding | Point]:
    """The same, run by run: a point that was stood, or a finding. ``seed``: of the order of the points."""
    if wrong := [kind for kind in kinds if kind not in ALL_KINDS]:
        raise ValueError(f"{', '.join(wrong)}: choose from {', '.join(ALL_KINDS)}")
    base = sandbox.snapshot()

    def run(point: Point | None, reference: Record | None) -> Record:
        trial = Trial(sandbox, base, "", point, reference)
        try:
            decided(scenario(trial))
            if not trial.started:
                raise ValueError("the scenario has started no operator: trial.operator(main)")
            trial.finish()
            return trial.record
        finally:
            trial.stop()
            sandbox.reset(base)

    reference = references(lambda: run(None, None))
    chosen = list(only) or reference.points(kinds, most)
    if seed is not None:
        random.Random(seed).shuffle(chosen)
    for point in chosen:
        try:
            run(point, reference)
        except Perturbed as error:
            yield Finding(point, str(error))
        else:
            yield point
