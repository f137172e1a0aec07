"""A few of the points of ``make perturb``: kcm's own controllers stand what goes wrong at their writes."""

import pytest

from tests.simulation.perturb import KINDS, Point, play, points_of, reference_of

STORY = "replicationcontroller"


@pytest.fixture(scope="module")
def reference():
    return reference_of(STORY)


@pytest.mark.parametrize("kind", KINDS)
def test_a_controller_stands(kind: str, reference) -> None:
    """The first creation of a pod, or the first update, with one thing gone wrong."""
    verb = "update" if kind == "conflict" else "create"
    points = [point for point in points_of(STORY, reference) if point.kind == kind and point.spot.verb == verb]
    point = next(one for one in points if one.spot.controller == "replicationcontroller-controller")
    run, wrong = play(STORY, point, reference)
    assert (run.fired, wrong) == (True, []), point


def test_what_goes_wrong_is_seen(reference) -> None:
    """A write that never comes is told: the same, with the controllers away for good."""
    spot = next(one for one in reference.spots if one.verb == "create" and one.resource == "pods")
    run, _ = play(STORY, Point(STORY, "after", spot), reference)
    assert sum(line.strip() == "after" for line in run.told) == 1
