import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.controllers.statefulset.plan import plan as decide
from kcm_cli.controllers.statefulset.plan.decide import CreateClaims, CreatePod, DeletePod, OwnClaims, UpdatePod
from kcm_cli.controllers.statefulset.plan.identity import MAX_CLAIMS
from kcm_cli.planning.actions import Mode
from tests.unit.controllers.statefulset.conftest import DATA, NOW, UID, controlled_by, pod_of, set_of, take_snapshot

DELETE_BOTH = {"whenDeleted": "Delete", "whenScaled": "Delete"}


def steps(decision):
    """The steps in order, as words, but for those of the rolling update."""
    return [word(step) for action in actions(decision) for step in action.steps]


def actions(decision):
    stages = decision.stages[:-1] if decision.updating else decision.stages
    return [one for stage in stages for one in stage.actions]


def word(step):
    match step:
        case CreatePod(name, _, _):
            return f"make {name}"
        case DeletePod(pod):
            return f"delete {pod.name}"
        case CreateClaims(pod, _):
            return f"claims {pod.name}"
        case OwnClaims(pod, _):
            return f"own {pod.name}"
        case UpdatePod(pod, _, _):
            return f"mend {pod.name}"


@pytest.fixture
def plan(make_set, make_pod, snapshot_of):
    """The steps for pods given as (ordinal, state) or (ordinal, state, deleting)."""

    def make(*pods, policy="OrderedReady", **spec):
        made = [make_pod(p[0], p[1], deleting=len(p) > 2) for p in pods]
        return steps(decide(snapshot_of(make_set(podManagementPolicy=policy, **spec), *made, settled=True), NOW))

    return make


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ([], ["make db-0"]),
        ([(0, "ready")], ["make db-1"]),
        ([(0, "running")], []),
        ([(0, "pending")], []),
        ([(0, "ready", "deleting")], []),
        ([(1, "ready")], ["make db-0"]),
        ([(0, "failed"), (1, "ready")], ["delete db-0"]),
        ([(0, "succeeded")], ["delete db-0"]),
        ([(0, "failed", "deleting")], []),
        ([(0, "ready"), (1, "running"), (2, "failed")], []),
        ([(0, "ready"), (1, "ready"), (2, "ready")], []),
        ([(0, "ready"), (1, "ready"), (2, "ready"), (3, "ready"), (4, "ready")], ["delete db-4"]),
        ([(0, "ready"), (1, "ready"), (2, "running"), (3, "ready")], []),
        ([(0, "ready"), (1, "ready"), (2, "ready"), (3, "ready"), (4, "ready", "deleting")], []),
        ([(0, "ready"), (1, "ready"), (2, "ready"), (3, "ready"), (4, "running")], ["delete db-4"]),
        ([(0, "ready"), (1, "ready"), (2, "ready"), (3, "running"), (4, "running")], []),
        ([(0, "ready"), (1, "ready"), (2, "ready"), (3, "running"), (4, "ready")], ["delete db-4"]),
    ],
)
def test_an_ordered_set_does_one_thing_at_a_time(plan, pods, expected):
    assert plan(*pods) == expected


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ([], ["make db-0", "make db-1", "make db-2"]),
        ([(1, "running")], ["make db-0", "make db-2"]),
        ([(0, "failed"), (1, "failed", "deleting"), (2, "succeeded")], ["delete db-0", "delete db-2"]),
        ([(0, "ready"), (3, "ready"), (4, "running"), (5, "ready", "deleting")],
         ["make db-1", "make db-2", "delete db-4", "delete db-3"]),
    ],
)  # fmt: skip
def test_a_parallel_set_does_everything_at_once(plan, pods, expected):
    assert plan(*pods, policy="Parallel") == expected


def test_moving_the_first_ordinal_creates_before_it_deletes(plan):
    assert plan((5, "ready"), (6, "ready"), replicas=2, ordinals={"start": 6}) == ["make db-7"]
    assert plan((5, "ready"), (6, "ready"), (7, "ready"), replicas=2, ordinals={"start": 6}) == ["delete db-5"]


def test_no_pod_is_created_whose_name_cannot_be_parsed(plan):
    """As v1.36: the API server refuses the pod of ordinal -1, which an Event reports."""
    assert plan((2**31 - 1, "ready"), replicas=2, ordinals={"start": 2**31 - 1}) == ["make db--1"]


def test_a_terminating_set_does_nothing(make_set, make_pod, snapshot_of):
    snapshot = snapshot_of(make_set(deleting=True), make_pod(0, "failed"))
    assert steps(decide(snapshot, NOW)) == []


def test_only_running_pods_are_available(make_set, make_pod, snapshot_of):
    """A kubelet writes phase and condition together; other clients may not."""
    pod = make_pod(0)
    pending = msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, phase="Pending"))
    assert steps(decide(snapshot_of(make_set(), pending), NOW)) == []


@pytest.mark.parametrize(("policy", "together"), [("OrderedReady", False), ("Parallel", True)])
def test_steps_of_parallel_sets_run_together(make_set, make_pod, snapshot_of, policy, together):
    surplus = [make_pod(n) for n in (3, 4)]
    decision = decide(snapshot_of(make_set(podManagementPolicy=policy), *surplus), NOW)
    mode = Mode.SLOW_START if together else Mode.SEQUENTIAL
    assert {(stage.mode, stage.anyway) for stage in decision.stages} == {(mode, together)}


def test_pods_are_available_after_min_ready_seconds(make_set, make_pod, snapshot_of):
    set_ = make_set(replicas=2, minReadySeconds=10)
    assert steps(decide(snapshot_of(set_, make_pod(0, ready_for_s=9)), NOW)) == []
    assert steps(decide(snapshot_of(set_, make_pod(0, ready_for_s=10)), NOW)) == ["make db-1"]


def test_a_pod_without_its_label_is_corrected_and_delays_no_other(make_set, make_pod, snapshot_of):
    pods = [make_pod(0, labels={"app": "db"}), make_pod(1)]
    decision = decide(snapshot_of(make_set(), *pods), NOW)
    assert steps(decision) == ["mend db-0", "make db-2"]
    assert decision.stages[0].actions[0].steps[0].pod_differs


def test_a_pod_with_wrong_storage_is_corrected_and_its_claims_created(make_set, make_pod, snapshot_of):
    decision = decide(snapshot_of(make_set(replicas=1, volumeClaimTemplates=[DATA]), make_pod(0)), NOW)
    step = decision.stages[0].actions[0].steps[0]
    assert (step.pod_differs, [claim["metadata"]["name"] for claim in step.claims.missing]) == (True, ["data-db-0"])


def test_claims_of_running_pods_change_owners_with_the_policy(make_set, make_pod, make_claim, snapshot_of):
    set_ = make_set(replicas=1, volumeClaimTemplates=[DATA], persistentVolumeClaimRetentionPolicy=DELETE_BOTH)
    snapshot = snapshot_of(set_, make_pod(0, claims=["data-db-0"]), claims=[make_claim(0)])
    decision = decide(snapshot, NOW)
    assert steps(decision) == ["mend db-0"]
    assert not decision.stages[0].actions[0].steps[0].pod_differs


@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
def test_a_pending_pod_gets_its_claims(make_set, make_pod, snapshot_of, policy):
    set_ = make_set(replicas=1, volumeClaimTemplates=[DATA], podManagementPolicy=policy)
    snapshot = snapshot_of(set_, make_pod(0, "pending", claims=["data-db-0"]))
    assert steps(decide(snapshot, NOW)) == ["claims db-0"]


def test_a_new_pod_waits_for_the_deletion_of_the_old_claim(make_set, make_claim, snapshot_of):
    retention = {"whenDeleted": "Retain", "whenScaled": "Delete"}
    set_ = make_set(replicas=1, volumeClaimTemplates=[DATA], persistentVolumeClaimRetentionPolicy=retention)
    stale = make_claim(0, controlled_by("v1", "Pod", "db-0", "earlier"))
    assert steps(decide(snapshot_of(set_, claims=[stale]), NOW)) == []


@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
def test_surplus_pods_own_their_claims_before_deletion(make_set, make_pod, make_claim, snapshot_of, policy):
    set_ = make_set(
        replicas=1,
        podManagementPolicy=policy,
        volumeClaimTemplates=[DATA],
        persistentVolumeClaimRetentionPolicy=DELETE_BOTH,
    )
    by_set = controlled_by("apps/v1", "StatefulSet", "db", UID)
    pods = [make_pod(ordinal, claims=[f"data-db-{ordinal}"]) for ordinal in (0, 1)]
    snapshot = snapshot_of(set_, *pods, claims=[make_claim(0, by_set), make_claim(1, by_set)])
    assert steps(decide(snapshot, NOW)) == ["own db-1", "delete db-1"]


def test_of_two_pods_with_one_ordinal_the_correctly_named_one_counts(make_set, make_pod, snapshot_of):
    for pods in ([make_pod("01"), make_pod(1)], [make_pod(1), make_pod("01")]):
        slots = decide(snapshot_of(make_set(), make_pod(0), *pods), NOW).slots
        assert slots[1].pod.name == "db-1"


STATES = st.sampled_from(["ready", "running", "pending", "failed", "succeeded", "absent", "deleting"])


@given(states=st.lists(STATES, max_size=7), replicas=st.integers(0, 5), old=st.integers(0, 7))
def test_ordered_sets_create_or_delete_one_pod_in_order(states, replicas, old):
    pods = [
        pod_of(
            n,
            "ready" if state == "deleting" else state,
            deleting=state == "deleting",
            revision="old" if n < old else "new",
        )
        for n, state in enumerate(states)
        if state != "absent"
    ]
    decision = decide(take_snapshot(set_of(replicas=replicas), *pods), NOW)
    changes = [s for one in actions(decision) for s in one.steps if isinstance(s, CreatePod | DeletePod)]
    assert len(changes) + len(decision.updating) <= 1
    for step in changes:
        if isinstance(step, CreatePod):
            ordinal = int(step.name.rpartition("-")[2])
            assert all(states[n] == "ready" for n in range(min(ordinal, len(states))))
            assert len(states) >= ordinal
    for gone in decision.updating:
        assert gone.labels["controller-revision-hash"] == "old"
        assert sum(state != "ready" for state in states[:replicas]) == 0


def many_templates(count):
    return [{"metadata": {"name": f"c{number}"}, "spec": {}} for number in range(count)]


def claims_created(decision):
    """The numbers of claims that are created for the pods."""
    return [len(step.claims.missing) for action in actions(decision) for step in action.steps]


@pytest.mark.parametrize(
    ("policy", "pods", "expected"),
    [
        pytest.param("Parallel", 0, 3, id="new pods"),
        pytest.param("Parallel", 30, 4, id="pods without volumes"),
        pytest.param("OrderedReady", 30, 4, id="pods without volumes, in order"),
    ],
)
def test_one_sync_creates_a_limited_number_of_claims(policy, pods, expected):
    """A set of a few hundred kilobytes can ask for millions of claims."""
    set_ = set_of(replicas=500, podManagementPolicy=policy, volumeClaimTemplates=many_templates(3000))
    decision = decide(take_snapshot(set_, *(pod_of(n) for n in range(pods)), settled=True), NOW)
    assert claims_created(decision) == [3000] * expected
    assert decision.cut_short == (pods > 0)  # new pods queue the set by themselves


@pytest.mark.parametrize("policy", ["Parallel", "OrderedReady"])
@pytest.mark.parametrize("pods", [3, 4, 5])
def test_a_plan_is_cut_short_if_pods_are_left(policy, pods):
    set_ = set_of(replicas=pods, podManagementPolicy=policy, volumeClaimTemplates=many_templates(MAX_CLAIMS // 4))
    decision = decide(take_snapshot(set_, *(pod_of(n) for n in range(pods)), settled=True), NOW)
    assert decision.cut_short == (pods > 4)


def test_a_pod_may_have_more_claims_than_one_sync_creates():
    set_ = set_of(volumeClaimTemplates=many_templates(MAX_CLAIMS + 1), podManagementPolicy="Parallel")
    assert claims_created(decide(take_snapshot(set_), NOW)) == [MAX_CLAIMS + 1]


class Counted(dict):
    looked = 0

    def get(self, *args):
        self.looked += 1
        return super().get(*args)


@pytest.mark.parametrize(
    ("policy", "replicas", "expected"),
    [
        pytest.param("Parallel", 0, ["delete db-5", "delete db-4", "delete db-3"], id="surplus pods"),
        pytest.param("OrderedReady", 0, ["delete db-299"], id="surplus pods, in order"),
        pytest.param("Parallel", 300, ["mend db-0", "mend db-1", "mend db-2", "mend db-3"], id="pods without volumes"),
    ],
)
def test_one_sync_looks_at_a_limited_number_of_claims(policy, replicas, expected):
    set_ = set_of(replicas=replicas, podManagementPolicy=policy, volumeClaimTemplates=many_templates(3000))
    pods = [pod_of(n, deleting=policy == "Parallel" and n > 5) for n in range(300)]
    claims = Counted()
    snapshot = msgspec.structs.replace(take_snapshot(set_, *pods, settled=True), claims=claims)
    assert steps(decide(snapshot, NOW)) == expected
    assert 0 < claims.looked <= 3 * MAX_CLAIMS
