"""Some points of ``make perturb``: kcm's controllers withstand faults at their writes."""

import asyncio
import random
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from kcm_cli.manager.controller_map import CONTROLLERS
from tests.simulation.perturb import KINDS, Point, Run, explained_of, placeless, play, points_of, reference_of
from tests.simulation.stories import STORIES, WITHOUT_STORY
from tests.simulation.stories.workloads import selected
from tests.simulation.world import World, simulate

STORY = "replicationcontroller"
CHEAP = ("tokens", "mirrored-endpoints")


@pytest.fixture(scope="module")
def reference() -> Run:
    return reference_of(STORY)


@pytest.mark.parametrize("kind", KINDS)
def test_a_controller_withstands_perturbations(kind: str, reference: Run) -> None:
    """The first creation of a pod, or the first update, with one perturbation."""
    verb = "update" if kind == "conflict" else "create"
    points = [point for point in points_of(STORY, reference) if point.kind == kind and point.spot.verb == verb]
    point = next(one for one in points if one.spot.controller == "replicationcontroller-controller")
    run, wrong = play(STORY, point, reference)
    assert (run.fired, wrong) == (True, []), point


@pytest.mark.parametrize("story", CHEAP)
def test_one_perturbation_of_each_kind_per_story(story: str) -> None:
    """Their writes in turn, each with another perturbation."""
    found = reference_of(story)
    points = points_of(story, found)
    for number, kind in enumerate(KINDS):
        several = [point for point in points if point.kind == kind]
        if several:
            point = several[number % len(several)]
            run, wrong = play(story, point, found)
            assert (run.fired, explained_of(str(point), wrong)[0]) == (True, []), point


def test_some_points_of_the_story_of_the_day() -> None:
    """All stories within as many days as there are of them, each at the same points. The day is that of the commit, so
    that it fails again."""
    command, seconds = ["git", "log", "-1", "--format=%ct"], ""
    with suppress(FileNotFoundError):  # there is no git
        seconds = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False).stdout
    day = int(seconds or 0) // 86_400
    story = list(STORIES)[day % len(STORIES)]
    found = reference_of(story)
    for point in random.Random(story).sample(points_of(story, found), 2):
        run, wrong = play(story, point, found)
        assert (run.fired, explained_of(str(point), wrong)[0]) == (True, []), point


def test_each_controller_that_writes_is_in_a_story() -> None:
    """``reference_of`` sees to it that they write in theirs."""
    in_stories = {f"{name}-controller" for story in STORIES.values() for name in story.about}
    names = {descriptor.name for descriptor in CONTROLLERS if not descriptor.cloud_only}
    assert names - in_stories == WITHOUT_STORY.keys()
    assert in_stories <= names


def test_repeated_requests_are_perturbed_also_the_last_time() -> None:
    """A namespace is emptied again and again while a finalizer holds it, less often in a run that does not wait."""
    reference = reference_of("namespace")
    point = [point for point in points_of("namespace", reference) if point.spot.verb == "deletecollection"][-1]
    run, wrong = play("namespace", point, reference)
    assert (run.fired, wrong) == (True, []), point


def test_failures_are_detected(reference: Run) -> None:
    """A manager that is killed for good after its first pod leaves one missing, which is reported."""
    spot = next(one for one in reference.spots if one.verb == "create" and one.resource == "pods")
    run, _ = play(STORY, Point(STORY, "crash", spot), reference)
    assert sum(line.strip() == "crash" for line in run.trace) == 1
    short = Run(states=[{**state, "pods rc-*": state["pods rc-*"][:1]} for state in reference.states])
    assert "pods rc-*: there are 2, not 1" in play(STORY, None, short)[1]


def test_nodes_of_pods_are_not_compared() -> None:
    """Nodes have the images of those that ran there, and Endpoints the addresses that they had."""
    node, other = (
        {"spec": {"podCIDR": cidr}, "status": {"images": images, "volumesInUse": images}}
        for cidr, images in (("a", ["v1"]), ("b", []))
    )
    assert placeless(node) == placeless(other) == {"spec": {}, "status": {}}
    slices = [
        {"endpoints": [{"addresses": [address], "targetRef": {"kind": "Pod", "name": address}}]} for address in "ab"
    ]
    assert placeless(slices[0]) == placeless(slices[1])


def test_a_killed_controller_sends_nothing_while_it_ends() -> None:
    """Its controllers end one after the other, and see what the next manager does."""

    async def story(world: World) -> tuple[int, BaseException | None]:
        manager = world.manager()
        await world.clock.sleep(5)
        manager.cancel()
        doc = {"metadata": {"name": "web"}, "spec": selected("web", replicas=2)}
        await world.create("apps/v1/replicasets", {"apiVersion": "apps/v1", "kind": "ReplicaSet", **doc})
        await asyncio.wait([manager])
        return len(world.objects("v1/pods")), None if manager.cancelled() else manager.exception()

    assert simulate(1, story) == (0, None)
