import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.controllers.daemonset.plan import plan
from kcm_cli.controllers.daemonset.plan.budget import allows_surge, surge_and_unavailable
from kcm_cli.controllers.daemonset.plan.decide import BURST
from kcm_cli.controllers.daemonset.plan.placement import ALWAYS, NEVER
from kcm_cli.controllers.daemonset.plan.rolling import roll
from kcm_cli.machinery.errors import FormatError
from kcm_cli.planning.actions import Create, Delete
from tests.unit.controllers.daemonset.conftest import NOW, pod_of, set_of, take_snapshot

NODES = ["n1", "n2", "n3", "n4"]


def old(name, state="ready", **options):
    return pod_of(name, state, hash_="old", **options)


def new(name, state="ready", **options):
    return pod_of(name, state, **options)


def rolled(snapshot):
    found = roll(snapshot, NOW)
    return found.create, [pod.name for pod in found.delete]


@pytest.mark.parametrize(
    ("maximum", "pods", "expected"),
    [
        (1, [old("n1"), old("n2"), old("n3"), old("n4")], ["n1"]),
        (2, [old("n1"), old("n2"), old("n3"), old("n4")], ["n1", "n2"]),
        ("30%", [old("n1"), old("n2"), old("n3"), old("n4")], ["n1", "n2"]),
        (2, [new("n1", "running"), old("n2"), old("n3"), old("n4")], ["n2"]),
        (1, [new("n1", "running"), old("n2"), old("n3"), old("n4")], []),
        (1, [new("n1"), new("n2"), new("n3"), new("n4")], []),
        (1, [old("n1", deleting=True), old("n2"), old("n3"), old("n4")], []),
        (1, [old("n2"), old("n3"), old("n4")], []),
        (1, [old("n1", "running"), old("n2", "running"), old("n3"), old("n4")], ["n1", "n2"]),
        (1, [old("n1/a"), old("n1/b"), old("n2"), old("n3"), old("n4")], []),
        (0, [old("n1"), old("n2"), old("n3"), old("n4")], ["n1"]),
        (2, [old("n1/a"), old("n1/b"), old("n2"), old("n3"), old("n4")], ["n2"]),
        (1, [old("n1/a"), new("n1/b"), old("n2"), old("n3"), old("n4")], []),
    ],
)
def test_old_pods_are_deleted_within_max_unavailable(maximum, pods, expected):
    snapshot = take_snapshot(set_of(rolling={"maxUnavailable": maximum}), NODES, *pods)
    assert rolled(snapshot) == ([], expected)


def test_pods_are_available_after_min_ready_seconds():
    daemon_set = set_of(minReadySeconds=10)
    pods = [new("n1", ready_for_s=9), old("n2")]
    assert rolled(take_snapshot(daemon_set, ["n1", "n2"], *pods)) == ([], [])
    pods = [new("n1", ready_for_s=10), old("n2")]
    assert rolled(take_snapshot(daemon_set, ["n1", "n2"], *pods)) == ([], ["n2"])


def test_pods_of_the_old_template_generation_are_updated():
    daemon_set = set_of(annotations={"deprecated.daemonset.template.generation": "4"})
    labels = {"app": "agent", "pod-template-generation": "4"}
    assert rolled(take_snapshot(daemon_set, ["n1"], pod_of("n1", labels=labels))) == ([], [])


@pytest.mark.parametrize(
    ("surge", "pods", "expected"),
    [
        (1, [old("n1"), old("n2"), old("n3")], (["n1"], [])),
        (2, [old("n1"), old("n2"), old("n3")], (["n1", "n2"], [])),
        ("50%", [old("n1"), old("n2"), old("n3")], (["n1", "n2"], [])),
        (1, [old("n1/o"), new("n1/n", "running"), old("n2"), old("n3")], ([], [])),
        (1, [old("n1/o"), new("n1/n"), old("n2"), old("n3")], (["n2"], ["n1-o"])),
        (1, [new("n1"), new("n2"), new("n3")], ([], [])),
        (1, [old("n1", "running"), old("n2", "running"), old("n3")], (["n1", "n2", "n3"], [])),
        (1, [old("n1/a"), old("n1/b"), old("n2"), old("n3")], ([], [])),
    ],
)
def test_new_pods_start_beside_old_ones_within_max_surge(surge, pods, expected):
    daemon_set = set_of(rolling={"maxSurge": surge, "maxUnavailable": 0})
    assert rolled(take_snapshot(daemon_set, ["n1", "n2", "n3"], *pods)) == expected


SURGE = {"maxSurge": 1, "maxUnavailable": 0}


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ([old("left"), old("n1", "running")], (["n1"], [])),
        ([old("left"), new("n1", "running")], ([], [])),
        ([old("left"), new("n1")], ([], ["left"])),
        ([old("left", "running"), new("n1", "running")], ([], ["left"])),
    ],
    ids=["other one old", "other one starts", "other one available", "broken itself"],
)
def test_with_surge_a_pod_is_deleted_only_when_another_is_available(pods, expected):
    assert rolled(take_snapshot(set_of(rolling=SURGE), {"left": NEVER, "n1": ALWAYS}, *pods)) == expected


def test_with_surge_pods_of_a_deleted_node_are_kept():
    assert rolled(take_snapshot(set_of(rolling=SURGE), ["n1"], new("n1"), old("gone", "running"))) == ([], [])


@pytest.mark.parametrize(
    ("rolling", "desired", "expected"),
    [
        ({"maxUnavailable": 3}, 10, (0, 3)),
        ({"maxUnavailable": "15%"}, 10, (0, 2)),
        ({"maxUnavailable": 0, "maxSurge": "15%"}, 10, (2, 0)),
        ({"maxUnavailable": 0, "maxSurge": 0}, 10, (0, 1)),
        ({"maxUnavailable": 0}, 0, (0, 0)),
        (None, 10, (0, 1)),
        (None, 0, (0, 0)),
    ],
)
def test_budgets_round_up_and_are_never_zero(rolling, desired, expected):
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    assert surge_and_unavailable(set_of(updateStrategy=strategy), desired) == expected


@pytest.mark.parametrize(
    ("type_", "most", "expected"),
    [
        ("RollingUpdate", 1, True),
        ("RollingUpdate", "1%", True),
        ("RollingUpdate", 0, False),
        ("RollingUpdate", "many", False),
        ("OnDelete", 1, False),
    ],
)
def test_two_pods_on_a_node_are_allowed_by_a_rolling_update_with_surge(type_, most, expected):
    strategy = {"type": type_, "rollingUpdate": {"maxSurge": most, "maxUnavailable": 0}}
    assert allows_surge(set_of(updateStrategy=strategy)) is expected


def test_an_invalid_percentage_is_an_error():
    with pytest.raises(FormatError):
        roll(take_snapshot(set_of(rolling={"maxUnavailable": "many"}), NODES), NOW)


def actions(snapshot):
    found = [action for stage in plan(snapshot, NOW).stages for action in stage.actions]
    creates = sum(isinstance(action, Create) for action in found)
    return creates, [action.name for action in found if isinstance(action, Delete)]


def test_missing_pods_are_created_before_the_update():
    assert actions(take_snapshot(set_of(), ["n1", "n2"], old("n1"))) == (1, [])


def test_on_delete_deletes_nothing():
    daemon_set = set_of(updateStrategy={"type": "OnDelete"})
    assert actions(take_snapshot(daemon_set, ["n1"], old("n1"))) == (0, [])
    assert actions(take_snapshot(daemon_set, ["n1", "n2"], old("n1"))) == (1, [])


def test_creations_per_sync_are_limited():
    nodes = [f"n{index}" for index in range(BURST + 50)]
    assert actions(take_snapshot(set_of(), nodes)) == (BURST, [])
    assert len(actions(take_snapshot(set_of(), dict.fromkeys(nodes, NEVER), *map(new, nodes)))[1]) == BURST


def test_creations_and_deletions_are_expected_together():
    snapshot = take_snapshot(set_of(), {"n1": ALWAYS, "n2": NEVER}, new("n2"))
    first, second = plan(snapshot, NOW).stages
    assert (first.expect.creations, first.expect.more) == (1, False)
    assert (second.expect.deletions, second.expect.more) == (("ns/n2",), True)


POD = st.tuples(st.sampled_from(["old", "new"]), st.sampled_from(["ready", "running", "deleting", "absent"]))


@given(pods=st.lists(POD, min_size=1, max_size=8), maximum=st.integers(1, 4))
def test_never_more_than_max_unavailable_down(pods, maximum):
    """Old pods that are down anyway may go beyond the budget; of the available ones no more go than it allows."""
    made = [
        pod_of(f"n{n}", "ready" if state == "deleting" else state, hash_=hash_, deleting=state == "deleting")
        for n, (hash_, state) in enumerate(pods)
        if state != "absent"
    ]
    nodes = [f"n{n}" for n in range(len(pods))]
    _, delete = rolled(take_snapshot(set_of(rolling={"maxUnavailable": maximum}), nodes, *made))
    down = sum(state != "ready" for _, state in pods)
    available = [name for name in delete if pods[int(name[1:])][1] == "ready"]
    assert not available or down + len(available) <= maximum
    assert all(pods[int(name[1:])][0] == "old" for name in delete)


@given(pods=st.lists(POD, min_size=1, max_size=8), maximum=st.integers(1, 4))
def test_never_more_than_max_surge_up(pods, maximum):
    made = [
        pod_of(f"n{n}", "ready" if state == "deleting" else state, hash_=hash_, deleting=state == "deleting")
        for n, (hash_, state) in enumerate(pods)
        if state != "absent"
    ]
    nodes = [f"n{n}" for n in range(len(pods))]
    create, delete = rolled(take_snapshot(set_of(rolling={"maxSurge": maximum, "maxUnavailable": 0}), nodes, *made))
    beside_available = [name for name in create if pods[int(name[1:])][1] == "ready"]
    assert len(beside_available) <= maximum
    assert not any(pods[int(name[1:])][1] == "ready" for name in delete)
