import msgspec
import pytest

from kcm_cli.api.apps import StatefulSetStatus
from kcm_cli.controllers.statefulset.plan import differs, plan, status
from kcm_cli.planning.actions import Done, Outcome
from tests.unit.controllers.statefulset.conftest import NOW


def look(snapshot, updated=0):
    planned = plan(snapshot, NOW)
    done = tuple(Done(action) for action in planned.stages[-1].actions[:updated]) if updated else ()
    return status(snapshot, planned, Outcome(done), NOW)


def test_counts(make_set, make_pod, snapshot_of):
    pods = [
        make_pod(0, revision="old"),
        make_pod(1, "running"),
        make_pod(2, ready_for_s=1),
        make_pod(3, "pending", revision="old"),
        make_pod(4, deleting=True),
    ]
    found = look(snapshot_of(make_set(replicas=4, minReadySeconds=5), *pods))
    assert (found.replicas, found.ready_replicas, found.available_replicas) == (5, 3, 2)
    assert (found.current_replicas, found.updated_replicas) == (2, 2)
    assert (found.current_revision, found.update_revision, found.observed_generation) == ("old", "new", 2)
    assert found.collision_count == 0


def test_pods_deleted_for_their_revision_do_not_count_as_current(make_set, make_pod, snapshot_of):
    snapshot = snapshot_of(make_set(replicas=2), make_pod(0, revision="old"), make_pod(1, revision="old"))
    assert look(snapshot, updated=1).current_replicas == 1


@pytest.mark.parametrize(("lowest", "expected"), [("old", 1), ("between", 0)])
def test_deleted_pods_of_a_revision_in_between_were_not_current(make_set, make_pod, snapshot_of, lowest, expected):
    pods = [make_pod(0, revision=lowest), make_pod(1, revision="between")]
    assert look(snapshot_of(make_set(replicas=2), *pods), updated=1).current_replicas == expected


@pytest.mark.parametrize(
    ("strategy", "states", "expected"),
    [
        ("RollingUpdate", ["ready", "ready"], "new"),
        ("RollingUpdate", ["ready", "running"], "old"),
        ("RollingUpdate", ["ready"], "old"),
        ("OnDelete", ["ready", "ready"], "new"),
    ],
)
def test_a_finished_rollout_makes_the_new_revision_current(make_set, make_pod, snapshot_of, strategy, states, expected):
    set_ = make_set(replicas=2, updateStrategy={"type": strategy})
    found = look(snapshot_of(set_, *(make_pod(n, state) for n, state in enumerate(states))))
    assert found.current_revision == expected
    assert found.current_replicas == (2 if expected == "new" else 0)


def test_a_terminating_set_still_counts(make_set, make_pod, snapshot_of):
    """Every pod then, also one without an ordinal, which does not count otherwise."""
    pods = [make_pod(0), make_pod(7), make_pod("x")]
    assert look(snapshot_of(make_set(deleting=True), *pods)).replicas == 3
    assert look(snapshot_of(make_set(), *pods)).replicas == 2


def test_only_running_pods_are_ready(make_set, make_pod, snapshot_of):
    pod = make_pod(0)
    pending = msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, phase="Pending"))
    assert look(snapshot_of(make_set(), pending)).ready_replicas == 0


STATUS = StatefulSetStatus(
    replicas=1, ready_replicas=1, current_revision="a", update_revision="b", observed_generation=3, collision_count=0
)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, False),
        ({"observed_generation": 4}, True),
        ({"observed_generation": 2}, False),
        ({"collision_count": 1}, False),
        ({"replicas": 2}, True),
        ({"ready_replicas": 0}, True),
        ({"available_replicas": 1}, True),
        ({"current_replicas": 1}, True),
        ({"updated_replicas": 1}, True),
        ({"current_revision": "x"}, True),
        ({"update_revision": "x"}, True),
    ],
    ids=str,
)
def test_changes_that_are_written(changes, expected):
    assert differs(STATUS, msgspec.structs.replace(STATUS, **changes)) is expected
