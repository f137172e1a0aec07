"""Some points of ``make perturb``: kcm's controllers withstand faults at their writes."""

import asyncio
import random
import subprocess
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from kcm_cli.manager.controller_map import CONTROLLERS
from kcm_cli.testing.perturb.points import ALL_KINDS, Point, Spot
from kcm_cli.testing.perturb.record import Record
from kcm_cli.testing.perturb.trial import Perturbed, Trial
from tests.kit.simulation import World, simulate
from tests.simulation.perturb import explained, outcome_of, placeless, points_of, recorded, reference
from tests.simulation.stories import EXPLAINED, STORIES, WITHOUT_STORY
from tests.simulation.stories.workloads import selected

STORY = "replicationcontroller"
CHEAP = ("tokens", "mirrored-endpoints")


@pytest.fixture(scope="module")
def known() -> Record:
    return reference(STORY)


def withstands(story: str, point: Point, known: Record) -> None:
    outcome = outcome_of(story, point, known)
    assert (outcome.came_up, outcome.story) == (True, ""), f"{story}/{point}"


@pytest.mark.parametrize("kind", sorted({*ALL_KINDS} - {"terminating"}))
def test_a_controller_withstands_perturbations(kind: str, known: Record) -> None:
    """The first creation of a pod, or its first update or change, with one perturbation."""
    verb = {"conflict": "update", "missed": "ADDED"}.get(kind, "create")
    withstands(STORY, next(one for one in points_of(known) if (one.kind, one.spot.verb) == (kind, verb)), known)


@pytest.mark.parametrize("story", CHEAP)
def test_one_perturbation_of_each_kind_per_story(story: str) -> None:
    """Their writes in turn, each with another perturbation."""
    known = reference(story)
    for number, kind in enumerate(ALL_KINDS):
        if several := [point for point in points_of(known) if point.kind == kind]:
            withstands(story, several[number % len(several)], known)


def test_some_points_of_the_story_of_the_day() -> None:
    """All stories within as many days as there are of them, each at the same points. The day is that of the commit, so
    that it fails again."""
    command, seconds = ["git", "log", "-1", "--format=%ct"], ""
    with suppress(FileNotFoundError):  # there is no git
        seconds = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False).stdout
    day = int(seconds or 0) // 86_400
    story = list(STORIES)[day % len(STORIES)]
    known = reference(story)
    for point in random.Random(story).sample(points_of(known), 2):
        withstands(story, point, known)


def test_each_controller_that_writes_is_in_a_story() -> None:
    """``recorded`` sees to it that they write in theirs."""
    in_stories = {f"{name}-controller" for story in STORIES.values() for name in story.about}
    names = {descriptor.name for descriptor in CONTROLLERS if not descriptor.cloud_only}
    assert names - in_stories == WITHOUT_STORY.keys(), "add a story to a file of tests/simulation/stories"
    assert in_stories <= names


def test_repeated_requests_are_perturbed_also_the_last_time() -> None:
    """A namespace is emptied again and again while a finalizer holds it, less often in a run that does not wait."""
    known = reference("namespace")
    withstands("namespace", [one for one in points_of(known) if one.spot.verb == "deletecollection"][-1], known)


def test_failures_are_detected(known: Record) -> None:
    """A pod more than without, here because one was taken from the reference."""
    short = Record(checkpoints=[{**one, "pods rc-*": one["pods rc-*"][:1]} for one in known.checkpoints])
    short.ties = [()] * len(short.checkpoints)
    with pytest.raises(Perturbed, match=r"pods rc-\*: there are 2, not 1"):
        recorded(STORY, short)


def test_what_is_explained_hides_no_failed_check(known: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    def differs(trial: Trial) -> None:
        raise Perturbed("it differs", "as it has to")

    monkeypatch.setattr(Trial, "finish", differs)
    point = points_of(known)[0]
    assert outcome_of(STORY, point, known).note == "as it has to"
    monkeypatch.setitem(STORIES, STORY, replace(STORIES[STORY], check=lambda world: ["ranges are shared"]))
    outcome = outcome_of(STORY, point, known)
    assert "ranges are shared" in outcome.story and outcome.note == ""


def test_what_has_to_differ_is_explained() -> None:
    point = Point("crash", Spot("update", "endpoints", "web", 2, "endpoint-controller"))
    late = "endpoints web: metadata.annotations is {'endpoints.kubernetes.io/last-change-trigger-time': 'TIME'}"
    assert explained("service", point, [late]) == EXPLAINED[1].why
    assert explained("service", point, [late, "endpoints web is missing"]) == ""
    assert explained("service", point, []) == ""


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
