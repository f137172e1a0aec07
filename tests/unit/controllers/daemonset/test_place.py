import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.controllers.daemonset.plan.decide import plan
from kcm_cli.controllers.daemonset.plan.place import place
from kcm_cli.controllers.daemonset.plan.placement import ALWAYS, NEVER, ONLY_KEPT
from tests.unit.controllers.daemonset.conftest import NOW, pod_of, set_of, take_snapshot

SURGE = {"maxSurge": 1, "maxUnavailable": 0}


def changes(snapshot):
    found = place(snapshot, NOW)
    return found.create, sorted(pod.name for pod in found.delete)


@pytest.mark.parametrize(
    ("fit", "pods", "expected"),
    [
        (ALWAYS, [], (["n1"], [])),
        (ONLY_KEPT, [], ([], [])),
        (NEVER, [], ([], [])),
        (ALWAYS, [pod_of("n1")], ([], [])),
        (ONLY_KEPT, [pod_of("n1")], ([], [])),
        (NEVER, [pod_of("n1")], ([], ["n1"])),
        (NEVER, [pod_of("n1", deleting=True)], ([], [])),
        (ALWAYS, [pod_of("n1", deleting=True)], ([], [])),
        (ALWAYS, [pod_of("n1", "failed")], ([], ["n1"])),
        (ALWAYS, [pod_of("n1", "succeeded")], ([], ["n1"])),
        (ALWAYS, [pod_of("n1/b", age_s=5), pod_of("n1/a", age_s=9)], ([], ["n1-b"])),
        (ALWAYS, [pod_of("n1/b", age_s=5, deleting=True), pod_of("n1/a", age_s=9)], ([], [])),
        (ALWAYS, [pod_of("n1/b", age_s=5), pod_of("n1/a", age_s=9, bound=False)], ([], ["n1-a"])),
        (ALWAYS, [pod_of("n1/b"), pod_of("n1/a")], ([], ["n1-b"])),
        (ALWAYS, [pod_of("n1/b", "succeeded", age_s=9), pod_of("n1/a", age_s=5)], ([], ["n1-b"])),
    ],
)
def test_one_pod_on_each_eligible_node(fit, pods, expected):
    assert changes(take_snapshot(set_of(), {"n1": fit}, *pods)) == expected


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ([pod_of("n1")], ([], [])),
        ([pod_of("n1", deleting=True)], (["n1"], [])),
        ([pod_of("n1", "failed")], (["n1"], ["n1"])),
        ([pod_of("n1/o", hash_="old"), pod_of("n1/n", "running")], ([], [])),
        ([pod_of("n1/o", hash_="old"), pod_of("n1/n")], ([], ["n1-o"])),
        ([pod_of("n1/o", "running", hash_="old"), pod_of("n1/n", "running")], ([], ["n1-o"])),
        ([pod_of("n1/o", hash_="old"), pod_of("n1/p", hash_="older")], ([], ["n1-p"])),
        ([pod_of("n1/a"), pod_of("n1/b")], ([], ["n1-b"])),
        ([pod_of("n1/o", hash_="old"), pod_of("n1/n", "running"), pod_of("n1/z", "running")], ([], ["n1-z"])),
    ],
)
def test_with_surge_an_old_pod_stays_until_the_new_one_is_available(pods, expected):
    assert changes(take_snapshot(set_of(rolling=SURGE), ["n1"], *pods)) == expected


def test_the_reasons_of_deletions():
    """With a look at all nodes for each deletion, 250 of them in a large cluster would take a second."""

    class Fits(dict):
        looks = 0

        def items(self):
            Fits.looks += 1
            return super().items()

    fits = Fits({"n1": ALWAYS, "n2": NEVER, "n3": ALWAYS} | {f"m{n}": NEVER for n in range(20)})
    pods = [pod_of("n1/b"), pod_of("n1/a"), pod_of("n2"), pod_of("n3", "failed"), pod_of("lost", bound=False)]
    snapshot = take_snapshot(set_of(), fits, *pods, *(pod_of(f"m{n}") for n in range(20)))
    (stage,) = plan(snapshot, NOW).stages
    assert {delete.name: delete.reason for delete in stage.actions if not delete.name.startswith("m")} == {
        "n1-b": "node has another one",
        "n2": "node should not run it",
        "n3": "pod has failed",
        "lost": "its node is gone",
    }
    assert len(stage.actions) == 24
    assert Fits.looks < 5


def test_with_surge_the_new_pod_must_be_available_for_min_ready_seconds():
    daemon_set = set_of(rolling=SURGE, minReadySeconds=10)
    old = pod_of("n1/o", hash_="old")
    assert changes(take_snapshot(daemon_set, ["n1"], old, pod_of("n1/n", ready_for_s=9))) == ([], [])
    assert changes(take_snapshot(daemon_set, ["n1"], old, pod_of("n1/n", ready_for_s=10))) == ([], ["n1-o"])


def test_a_failed_pod_is_reported_and_recorded_in_the_backoff():
    found = place(take_snapshot(set_of(), ["n1"], pod_of("n1", "failed")), NOW)
    assert [(n.type, n.reason, n.message) for n in found.notices] == [
        ("Warning", "FailedDaemonPod", "Found failed daemon pod ns/n1 on node n1, will try to kill it")
    ]
    assert found.failed == ["n1"]


def test_a_succeeded_pod_is_reported():
    found = place(take_snapshot(set_of(), ["n1"], pod_of("n1", "succeeded")), NOW)
    assert [(n.type, n.reason, n.message) for n in found.notices] == [
        ("Normal", "SucceededDaemonPod", "Found succeeded daemon pod ns/n1 on node n1, will try to delete it")
    ]
    assert found.failed == []


def test_a_failed_pod_waits_for_its_backoff():
    pods = [pod_of("n1", "failed"), pod_of("n2", "failed"), pod_of("n3", "failed")]
    found = place(take_snapshot(set_of(), ["n1", "n2", "n3"], *pods, backoff={"n1": 8.0, "n2": 4.0}), NOW)
    assert [pod.name for pod in found.delete] == ["n3"]
    assert found.retry_s == 4.0


@pytest.mark.parametrize(
    ("pods", "backoff", "expected"),
    [
        ([pod_of("n1", "failed")], {"n1": 8.0}, ([], [])),
        ([pod_of("n1", "failed"), pod_of("n1/b", deleting=True)], {"n1": 8.0}, ([], [])),
        ([pod_of("n1", "failed", hash_="old"), pod_of("n1/b", "failed")], {"n1": 8.0}, ([], [])),
        ([pod_of("n1", "failed")], {}, (["n1"], ["n1"])),
    ],
)
def test_with_surge_no_pod_is_created_beside_a_failed_one_that_waits(pods, backoff, expected):
    assert changes(take_snapshot(set_of(rolling=SURGE), ["n1"], *pods, backoff=backoff)) == expected


def test_pods_pending_for_a_deleted_node_are_deleted():
    pods = [pod_of("gone", bound=False), pod_of("gone/b"), pod_of("gone/c", bound=False, deleting=True)]
    assert changes(take_snapshot(set_of(), [], *pods)) == ([], ["gone"])


PODS = st.lists(
    st.tuples(
        st.sampled_from(["n1", "n2", "n3"]),
        st.sampled_from(["ready", "running", "failed", "succeeded"]),
        st.booleans(),
        st.sampled_from(["old", "new"]),
    ),
    max_size=7,
)
FITS = st.fixed_dictionaries({name: st.sampled_from([ALWAYS, ONLY_KEPT, NEVER]) for name in ("n1", "n2")})


@given(pods=PODS, fits=FITS, surge=st.booleans(), order=st.randoms(use_true_random=False))
def test_no_pod_is_deleted_twice_in_any_order(pods, fits, surge, order):
    made = [
        pod_of(f"{node}/{index}", state, deleting=deleting, hash_=hash_)
        for index, (node, state, deleting, hash_) in enumerate(pods)
    ]
    daemon_set = set_of(rolling=SURGE if surge else None)
    create, delete = changes(take_snapshot(daemon_set, fits, *made))
    assert len(set(delete)) == len(delete)
    assert len(set(create)) == len(create)
    assert all(fits[node].runs for node in create)
    gone = {pod.name for pod in made if pod.deleting}
    assert not gone.intersection(delete)
    order.shuffle(made)
    again_create, again_delete = changes(take_snapshot(daemon_set, fits, *made))
    failed = {pod.name for pod in made if pod.status.phase == "Failed"}
    assert again_create == create
    assert set(again_delete) - failed == set(delete) - failed
