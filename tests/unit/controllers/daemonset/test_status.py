import pytest

from kcm_cli.controllers.daemonset.plan import status
from kcm_cli.controllers.daemonset.plan.placement import ALWAYS, NEVER, ONLY_KEPT
from tests.unit.controllers.daemonset.conftest import NOW, pod_of, set_of, take_snapshot


def test_counts():
    fits = {"n1": ALWAYS, "n2": ALWAYS, "n3": ALWAYS, "n4": ALWAYS, "n5": NEVER, "n6": ONLY_KEPT, "n7": NEVER}
    pods = [
        pod_of("n1"),
        pod_of("n2", ready_for_s=1, hash_="old"),
        pod_of("n3", "running"),
        pod_of("n5"),
        pod_of("n6"),
        pod_of("gone"),
    ]
    found = status(take_snapshot(set_of(minReadySeconds=5), fits, *pods), NOW, observed=True)
    assert found.desired_number_scheduled == 4
    assert found.current_number_scheduled == 3
    assert found.number_misscheduled == 2
    assert found.number_ready == 2
    assert found.number_available == 1
    assert found.number_unavailable == 3
    assert found.updated_number_scheduled == 2
    assert found.observed_generation == 2


def test_the_oldest_pod_of_a_node_counts():
    pods = [pod_of("n1/young", age_s=1), pod_of("n1/old", "running", age_s=9, hash_="old")]
    found = status(take_snapshot(set_of(), ["n1"], *pods), NOW, observed=True)
    assert (found.current_number_scheduled, found.number_ready, found.updated_number_scheduled) == (1, 0, 0)


def test_an_unprocessed_generation_is_not_observed():
    found = status(take_snapshot(set_of({"observedGeneration": 1}), []), NOW, observed=False)
    assert found.observed_generation == 1


@pytest.mark.parametrize(("present", "expected"), [({"observedGeneration": 2}, False), ({}, True)])
def test_only_a_change_is_written(present, expected):
    snapshot = take_snapshot(set_of(present), [])
    assert (status(snapshot, NOW, observed=True) != snapshot.daemon_set.status) is expected


def test_the_collision_count_is_kept():
    snapshot = take_snapshot(set_of({"collisionCount": 3}), [])
    assert status(snapshot, NOW, observed=True).collision_count == 3
