import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.controllers.statefulset.plan import identity, plan
from tests.unit.controllers.statefulset.conftest import NOW, pod_of, set_of, take_snapshot

ROLLING = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}


@pytest.fixture
def updating(make_set, make_pod, snapshot_of):
    """The names of the pods deleted for their revision; pods are (revision, state), by ordinal."""

    def run(*pods, gate=False, strategy=ROLLING, policy="OrderedReady", **spec):
        made = [make_pod(n, p[1], revision=p[0], deleting=len(p) > 2) for n, p in enumerate(pods) if p is not None]
        set_ = make_set(replicas=len(pods), podManagementPolicy=policy, updateStrategy=strategy, **spec)
        decision = plan(snapshot_of(set_, *made), NOW, counts_unavailable=gate)
        return [pod.name for pod in decision.updating]

    return run


OLD, NEW = ("old", "ready"), ("new", "ready")


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ([OLD, OLD, OLD], ["db-2"]),
        ([OLD, OLD, NEW], ["db-1"]),
        ([NEW, NEW, NEW], []),
        ([OLD, OLD, ("new", "running")], []),
        ([OLD, OLD, ("old", "ready", "deleting")], []),
    ],
)
def test_one_pod_at_a_time_from_the_highest_ordinal(updating, pods, expected):
    assert updating(*pods) == expected


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ([OLD, ("old", "running"), OLD], ["db-2"]),
        ([OLD, OLD, ("old", "running")], ["db-2"]),
        ([OLD, OLD, ("new", "pending")], []),
        ([OLD, OLD, None], []),
        ([OLD, OLD, ("old", "failed")], []),
        ([("old", "failed"), OLD, OLD], ["db-2"]),
        ([OLD, OLD, ("old", "ready", "deleting")], []),
    ],
    ids=[
        "broken lower",
        "broken highest",
        "new one pending",
        "missing",
        "a failed pod is deleted",
        "failed lower",
        "terminating",
    ],
)
def test_a_parallel_set_waits_only_for_updated_pods(updating, pods, expected):
    assert updating(*pods, policy="Parallel") == expected


@pytest.mark.parametrize(
    ("pods", "partition", "expected"),
    [
        ([None, None, None, OLD, OLD], 0, ["db-4"]),
        ([None, None, None, OLD, NEW], 0, ["db-3"]),
        ([None, None, None, OLD, NEW], 4, []),
        ([OLD, OLD, None, None, None], 0, []),
        ([None, None, OLD, None, NEW], 0, []),
    ],
)
def test_a_parallel_set_that_lacks_more_than_one_sync_creates_is_updated(
    updating, monkeypatch, pods, partition, expected
):
    monkeypatch.setattr(identity, "MAX_MISSING", 2)
    rolling = {"partition": partition}
    assert updating(*pods, policy="Parallel", strategy={**ROLLING, "rollingUpdate": rolling}) == expected
    allowed = {**ROLLING, "rollingUpdate": {**rolling, "maxUnavailable": 4}}
    named = [f"db-{n}" for n, pod in enumerate(pods) if pod == OLD and n >= partition]
    assert updating(*pods, policy="Parallel", strategy=allowed, gate=True) == named[::-1][:1]


def test_pods_below_the_partition_are_kept(updating):
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    assert updating(OLD, OLD, OLD, strategy=strategy) == ["db-2"]
    assert updating(OLD, OLD, NEW, strategy=strategy) == []


@pytest.mark.parametrize("gate", [False, True])
def test_the_partition_counts_from_the_first_ordinal(make_set, make_pod, snapshot_of, gate):
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    set_ = make_set(ordinals={"start": 5}, updateStrategy=strategy)
    for done, expected in ((0, ["db-7"]), (1, ["db-6"]), (2, [])):
        pods = [make_pod(n, revision="new" if n > 7 - done else "old") for n in (5, 6, 7)]
        decision = plan(snapshot_of(set_, *pods), NOW, counts_unavailable=gate)
        assert [pod.name for pod in decision.updating] == expected


def test_a_partition_beyond_the_replicas_updates_nothing(updating):
    assert updating(OLD, strategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 9}}) == []


@pytest.mark.parametrize("gate", [False, True])
def test_on_delete_updates_nothing(updating, gate):
    assert updating(OLD, OLD, strategy={"type": "OnDelete"}, gate=gate) == []


def test_a_broken_update_stays_stuck_after_a_rollback(updating):
    """upstream: known limitation of ordered sets; the broken pod has to be deleted by hand."""
    assert updating(OLD, OLD, ("broken", "pending")) == []


@pytest.mark.parametrize(
    ("maximum", "pods", "expected"),
    [
        (2, [OLD, OLD, OLD, OLD], ["db-3", "db-2"]),
        (2, [OLD, OLD, OLD, ("new", "running")], ["db-2"]),
        (2, [OLD, OLD, ("new", "running"), ("new", "running")], []),
        ("50%", [OLD, OLD, OLD, OLD], ["db-3", "db-2"]),
        ("10%", [OLD, OLD, OLD, OLD], ["db-3"]),
        (None, [OLD, OLD, OLD, OLD], ["db-3"]),
        (3, [NEW, OLD, NEW, OLD], ["db-3", "db-1"]),
        (1, [("old", "running"), OLD, OLD, OLD], ["db-0"]),
        (1, [("old", "running"), OLD, ("old", "running"), OLD], ["db-2"]),
        (2, [("old", "running"), OLD, OLD, OLD], ["db-0", "db-3"]),
        (1, [("old", "running"), OLD, ("new", "running"), OLD], []),
        (1, [("old", "running"), OLD, OLD, ("old", "ready", "deleting")], []),
        (2, [OLD, OLD, OLD, ("old", "ready", "deleting")], ["db-2"]),
    ],
)
def test_with_the_gate_max_unavailable_pods_are_updated(updating, maximum, pods, expected):
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0, "maxUnavailable": maximum}}
    assert updating(*pods, gate=True, strategy=strategy, policy="Parallel") == expected


def test_without_the_gate_max_unavailable_is_ignored(updating):
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0, "maxUnavailable": 3}}
    assert updating(OLD, OLD, OLD, strategy=strategy) == ["db-2"]


POD = st.tuples(st.sampled_from(["old", "new"]), st.sampled_from(["ready", "running", "deleting", "absent"]))


@given(pods=st.lists(POD, min_size=1, max_size=8), maximum=st.integers(1, 5), partition=st.integers(0, 8))
def test_never_more_than_max_unavailable_down(pods, maximum, partition):
    made = [
        pod_of(n, "ready" if state == "deleting" else state, revision=revision, deleting=state == "deleting")
        for n, (revision, state) in enumerate(pods)
        if state != "absent"
    ]
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": partition, "maxUnavailable": maximum}}
    wanted = set_of(replicas=len(pods), podManagementPolicy="Parallel", updateStrategy=strategy)
    gone = plan(take_snapshot(wanted, *made), NOW, counts_unavailable=True).updating
    down = sum(state != "ready" for _, state in pods)
    broken = [
        n for n, (revision, state) in enumerate(pods) if (revision, state) == ("old", "running") and n >= partition
    ]
    up = [pod for pod in gone if int(pod.name[3:]) not in broken]
    assert not up or down + len(up) <= maximum
    assert len(gone) - len(up) <= max(0, maximum - (down - len(broken)))
    assert all(int(pod.name[3:]) >= partition for pod in gone)
    assert all(pod.labels["controller-revision-hash"] == "old" for pod in gone)
