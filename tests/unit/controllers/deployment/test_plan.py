"""Plans of the deployment controller."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.api.apps import (
    Deployment,
    DeploymentSpec,
    DeploymentStatus,
    DeploymentStrategy,
    ReplicaSet,
    ReplicaSetSpec,
    ReplicaSetStatus,
    RollingUpdateDeployment,
)
from kcm_cli.api.core import Condition
from kcm_cli.api.well_known import LAST_APPLIED
from kcm_cli.controllers.deployment.plan import next_check_s, plan, spec, status
from kcm_cli.controllers.deployment.plan.revisions import replica_set_name
from kcm_cli.controllers.deployment.plan.rollout import Snapshot
from kcm_cli.controllers.deployment.plan.spec import same_template
from kcm_cli.machinery.errors import SyncError
from kcm_cli.machinery.hashes import pod_template_hash
from kcm_cli.machinery.labels import LabelSelector
from kcm_cli.machinery.meta import ObjectMeta
from kcm_cli.machinery.times import format_time
from kcm_cli.planning.actions import Create, Delete, Done, Failed, Outcome, Plan, Update

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SURGE = RollingUpdateDeployment(max_surge="25%", max_unavailable="25%")


def template(image: str) -> dict[str, object]:
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": image}]}}


def deployment(replicas: int = 10, image: str = "v2", **changes: object) -> Deployment:
    meta = {"name": "web", "namespace": "ns", "uid": "d", "generation": 2, **(changes.pop("meta", {}))}  # type: ignore[dict-item]
    state = changes.pop("status", DeploymentStatus())
    fields: dict[str, object] = {
        "replicas": replicas,
        "selector": LabelSelector(match_labels={"app": "web"}),
        "strategy": DeploymentStrategy("RollingUpdate", SURGE),
        "template": template(image),
        "revision_history_limit": 10,
        "progress_deadline_seconds": 600,
        **changes,
    }
    return Deployment(metadata=ObjectMeta(**meta), spec=DeploymentSpec(**fields), status=state)  # type: ignore[arg-type]


def replica_set(name: str, image: str, size: int, available: int | None = None, **changes: object) -> ReplicaSet:
    notes = {
        spec.DESIRED_REPLICAS: str(changes.get("desired", 10)),
        spec.MAX_REPLICAS: str(changes.get("most", 13)),
        spec.REVISION: str(changes.get("revision", 1)),
    }
    ready = size if available is None else available
    made = format_time(NOW - timedelta(hours=24 - int(str(changes.get("revision", 1)))))
    meta = ObjectMeta(name=name, namespace="ns", uid=name, generation=1, annotations=notes, creation_timestamp=made)
    counts = ReplicaSetStatus(
        replicas=int(str(changes.get("running", size))),
        ready_replicas=ready,
        available_replicas=ready,
        terminating_replicas=0,
        observed_generation=1,
    )
    return ReplicaSet(metadata=meta, spec=ReplicaSetSpec(replicas=size, template=template(image)), status=counts)


def sizes(made: Plan) -> dict[str, int]:
    """The sizes that a plan sets, new ReplicaSets under "new"."""
    found: dict[str, int] = {}
    for stage in made:
        for action in stage.actions:
            if isinstance(action, Create) and isinstance(action.body, dict):
                found["new"] = action.body["spec"]["replicas"]  # type: ignore[index]
            elif isinstance(action, Update) and ("spec", "replicas") in action.changes:
                found[action.obj.name] = int(str(action.changes[("spec", "replicas")]))
    return found


def planned(d: Deployment, *sets: ReplicaSet, running: dict[str, int] | None = None) -> Plan:
    return plan(Snapshot(d, sets, running or {}), NOW).stages


# -- rolling


def test_a_first_rollout_creates_all_replicas_at_once() -> None:
    made = planned(deployment(3))
    (create,) = made[0].actions
    assert isinstance(create, Create) and isinstance(create.body, dict)
    assert sizes(made) == {"new": 3}
    assert create.body["metadata"]["annotations"][spec.REVISION] == "1"  # type: ignore[index]
    value = create.body["metadata"]["labels"][spec.HASH_LABEL]  # type: ignore[index]
    assert create.body["metadata"]["name"] == f"web-{value}"  # type: ignore[index]
    assert create.body["spec"]["selector"]["matchLabels"][spec.HASH_LABEL] == value  # type: ignore[index]


@pytest.mark.parametrize(
    ("replicas", "surge", "size", "most"),
    [
        pytest.param(3, 2**31 - 1, 0, "-2147483646", id="a surge"),
        pytest.param(3, 2**31 - 4, 3, "2147483647", id="the largest surge that works"),
        pytest.param(2**31 - 1, "25%", 0, "-1610612737", id="a size"),
    ],
)
def test_pods_and_surge_beyond_32_bits_create_no_pod(replicas: int, surge: int | str, size: int, most: str) -> None:
    """As seen beside v1.36: the sum is negative."""
    made = planned(deployment(replicas, strategy=DeploymentStrategy("RollingUpdate", RollingUpdateDeployment(surge))))
    (create,) = made[0].actions
    assert isinstance(create, Create) and isinstance(create.body, dict)
    assert sizes(made) == {"new": size}
    assert create.body["metadata"]["annotations"][spec.MAX_REPLICAS] == most  # type: ignore[index]


ROLLING = [
    pytest.param([("old", "v1", 10, 10)], {"new": 3, "old": 8}, id="start-uses-surge-and-max-unavailable"),
    pytest.param([("old", "v1", 8, 8), ("new", "v2", 3, 0)], {"new": 5}, id="the-new-one-grows-before-the-old-shrinks"),
    pytest.param([("old", "v1", 8, 8), ("new", "v2", 5, 0)], {}, id="nothing-moves-while-the-new-pods-are-not-there"),
    pytest.param([("old", "v1", 8, 8), ("new", "v2", 5, 2)], {"old": 6}, id="old-shrinks-by-what-became-available"),
    pytest.param([("old", "v1", 8, 5), ("new", "v2", 5, 0)], {}, id="unhealthy-old-pods-stay-within-the-budget"),
    pytest.param([("old", "v1", 8, 4), ("new", "v2", 5, 4)], {"old": 4}, id="unhealthy-old-pods-go-first"),
    pytest.param([("new", "v2", 12, 12)], {"new": 10}, id="a-new-one-that-is-too-large-shrinks"),
]


@pytest.mark.parametrize(("sets", "expected"), ROLLING)
def test_rolling(sets: list[tuple[str, str, int, int]], expected: dict[str, int]) -> None:
    found = [replica_set(n, i, size, ready, revision=r) for r, (n, i, size, ready) in enumerate(sets, 1)]
    assert sizes(planned(deployment(), *found)) == expected


def test_unhealthy_and_surplus_pods_of_a_replica_set_are_removed_in_one_update() -> None:
    made = planned(deployment(), replica_set("old", "v1", 8, 6), replica_set("new", "v2", 5, 5, revision=2))
    assert sizes(made) == {"old": 3}
    assert sum(isinstance(action, Update) for stage in made for action in stage.actions) == 1


def test_pods_beyond_the_desired_replicas_do_not_count_as_available() -> None:
    """A ReplicaSet that was just scaled down still reports the pods that are about to go."""
    old = replica_set("old", "v1", 6, 8, desired=7, most=10)
    new = replica_set("new", "v2", 4, 0, desired=7, most=10, revision=2)
    d = deployment(7, strategy=DeploymentStrategy("RollingUpdate", RollingUpdateDeployment(3, 2)))
    assert sizes(planned(d, old, new)) == {"old": 5}


both = st.tuples(st.integers(0, 12), st.integers(0, 12))


@given(st.integers(0, 12), both, both, st.integers(0, 4), st.integers(0, 4))
def test_a_rolling_step_keeps_its_budget(
    desired: int, old: tuple[int, int], new: tuple[int, int], surge: int, unavailable: int
) -> None:
    """Never more than the surge; old pods are only deleted while enough others are available."""
    strategy = DeploymentStrategy(
        "RollingUpdate", RollingUpdateDeployment(max_surge=surge, max_unavailable=unavailable)
    )
    d = deployment(desired, strategy=strategy)
    before = replica_set("old", "v1", old[0], min(old), desired=desired)
    after = replica_set("new", "v2", new[0], min(new), desired=desired, revision=2)
    found = sizes(planned(d, before, after))
    total = found.get("old", old[0]) + found.get("new", new[0])
    assert total <= max(old[0] + new[0], desired + spec.max_surge(d))
    if "old" in found and found["old"] < old[0]:
        available = min(min(old), found["old"]) + min(new)
        assert available >= min(min(old) + min(new), desired - spec.max_unavailable(d))


@given(st.integers(1, 10), both, both)
def test_a_plan_does_not_depend_on_the_order_of_lists(desired: int, old: tuple[int, int], new: tuple[int, int]) -> None:
    sets = (replica_set("old", "v1", *old), replica_set("new", "v2", *new, revision=2), replica_set("x", "v0", 2))
    d = deployment(desired)
    assert planned(d, *sets) == planned(d, *reversed(sets))


# -- recreate


def recreate(**changes: object) -> Deployment:
    return deployment(3, strategy=DeploymentStrategy("Recreate"), **changes)


def test_recreate_scales_old_replica_sets_down_first() -> None:
    assert sizes(planned(recreate(), replica_set("old", "v1", 3, desired=3, most=3))) == {"old": 0}


def test_recreate_waits_for_the_last_old_pod() -> None:
    old = replica_set("old", "v1", 0, desired=3, most=3)
    assert not planned(recreate(), old, running={"old": 1})
    assert not planned(recreate(), replica_set("old", "v1", 0, running=1, desired=3, most=3))


def test_recreate_scales_up_without_old_pods() -> None:
    old = replica_set("old", "v1", 0, desired=3, most=3)
    assert sizes(planned(recreate(), old, running={"old": 0})) == {"new": 3}


# -- scaling


def test_the_only_active_replica_set_is_scaled() -> None:
    assert sizes(planned(deployment(4), replica_set("new", "v2", 10))) == {"new": 4}


PROPORTIONS = [
    pytest.param(15, 8, 5, {"old": 11, "new": 7}, id="growth-is-shared"),
    pytest.param(7, 11, 7, {"old": 6, "new": 4}, id="shrinking-is-shared"),
    pytest.param(0, 8, 5, {"old": 0, "new": 0}, id="zero-is-zero-for-all"),
]


@pytest.mark.parametrize(("desired", "old", "new", "expected"), PROPORTIONS)
def test_scaling_in_the_middle_of_a_rollout(desired: int, old: int, new: int, expected: dict[str, int]) -> None:
    surge = RollingUpdateDeployment(max_surge=3, max_unavailable=2)
    d = deployment(desired, strategy=DeploymentStrategy("RollingUpdate", surge))
    was = 10 if old == 8 else 15
    sets = (
        replica_set("old", "v1", old, 8, desired=was, most=was + 3),
        replica_set("new", "v2", new, 0, desired=was, most=was + 3, revision=2),
    )
    assert sizes(planned(d, *sets)) == expected


def test_a_rollout_continues_if_the_old_replica_set_has_the_new_size_already() -> None:
    old = replica_set("old", "v1", 3, desired=4, most=5)
    noting = planned(deployment(3), old)
    (update,) = [a for stage in noting for a in stage.actions if isinstance(a, Update) and a.obj is old]
    sizes_noted = {spec.DESIRED_REPLICAS: "3", spec.MAX_REPLICAS: "4", spec.REVISION: "1"}
    assert update.changes == {("metadata", "annotations"): sizes_noted}
    assert "new" in sizes(planned(deployment(3), replica_set("old", "v1", 3, desired=3, most=4)))


@pytest.mark.parametrize(("images", "creates"), [(("w1", "w1"), False), (("w1", "w2"), True)], ids=["alike", "edited"])
def test_two_replica_sets_of_the_template_with_one_other_template_show_that_it_is_altered(
    images: tuple[str, str], creates: bool
) -> None:
    d = deployment(4, status=DeploymentStatus(collision_count=1))
    hashes = (pod_template_hash(d.spec.template, count) for count in (None, 1))
    first, second = map(replica_set_name, ("web", "web"), hashes)
    sets = (replica_set(first, images[0], 4, desired=4), replica_set(second, images[1], 0, desired=4, revision=2))
    assert ("new" in sizes(planned(d, *sets))) == creates
    assert (second in sizes(planned(d, *sets))) != creates


def test_a_new_replica_set_that_has_the_new_size_already_completes() -> None:
    """Rolled back and scaled at once, in the middle of a rollout without a surge: kubernetes#138036."""
    d, new = deployment(3), replica_set("new", "v2", 3, desired=4, most=5)
    (update,) = [a for stage in planned(d, new) for a in stage.actions if isinstance(a, Update)]
    assert update.changes == {
        ("metadata", "annotations"): {**new.annotations, spec.DESIRED_REPLICAS: "3", spec.MAX_REPLICAS: "4"}
    }
    rollout = plan(Snapshot(d, (replica_set("new", "v2", 3, desired=3, most=4),), {}), NOW)
    report = status(rollout, Outcome(), NOW)
    assert report is not None
    assert {c.reason for c in report.status.conditions} == {spec.MINIMUM_AVAILABLE, spec.REPLICA_SET_AVAILABLE}


@given(st.integers(0, 30), st.integers(1, 20), st.integers(1, 20))
def test_proportions_add_up(desired: int, old: int, new: int) -> None:
    d = deployment(desired)
    noted = {"desired": 99, "most": old + new}
    sets = (replica_set("old", "v1", old, 0, **noted), replica_set("new", "v2", new, 0, revision=2, **noted))
    found = {"old": old, "new": new} | sizes(planned(d, *sets))
    assert sum(found.values()) == (desired + spec.max_surge(d) if desired else 0)
    assert min(found.values()) >= 0


# -- paused, deleted, rolled back, cleaned up


def test_a_paused_deployment_starts_no_rollout_but_scales() -> None:
    d = deployment(5, paused=True)
    assert not planned(d, replica_set("old", "v1", 5, desired=5, most=7))
    assert sizes(planned(d, replica_set("old", "v1", 10))) == {"old": 5}


def test_a_paused_deployment_keeps_the_replica_set_that_it_scales_up() -> None:
    """Paused while Recreate waits for the end of the old pods: the last ReplicaSet, empty by now, gets its pods back.
    Without a history, upstream deletes it in the same sync, and its pods are nobody's."""
    d = deployment(2, paused=True, strategy=DeploymentStrategy("Recreate"), revision_history_limit=0)
    older, old = replica_set("older", "v0", 0), replica_set("old", "v1", 0, revision=2)
    made = planned(d, older, old)
    deleted = [a.name for stage in made for a in stage.actions if isinstance(a, Delete)]
    assert (sizes(made), deleted) == ({"old": 2}, ["older"])


def test_a_terminating_deployment_is_not_scaled() -> None:
    d = deployment(meta={"deletion_timestamp": format_time(NOW)})
    assert sizes(planned(d, replica_set("old", "v1", 4))) == {}


def test_a_rollback_copies_template_and_annotations_and_clears_the_request() -> None:
    d = deployment(meta={"annotations": {spec.ROLLBACK_TO: "1", "note": "new"}})
    old = replica_set("old", "v1", 0)
    new = replica_set("new", "v2", 10, revision=2)
    made = planned(d, old, new)
    update = next(a for s in made for a in s.actions if isinstance(a, Update) and a.obj is d)
    assert update.changes[("spec", "template")] == template("v1")
    assert spec.ROLLBACK_TO not in (update.changes[("metadata", "annotations")] or {})  # type: ignore[operator]
    events = [a.done.reason for s in made for a in s.actions if a.done is not None]
    assert events == ["DeploymentRollback"]


def test_a_rollback_to_the_last_revision_counts_a_template_that_has_no_replica_set_yet() -> None:
    """Changed to v3 and rolled back in one write: the last revision is that of v2. First v3 gets its ReplicaSet, which
    the status records."""
    d = deployment(image="v3", meta={"annotations": {spec.ROLLBACK_TO: "0"}})
    sets = replica_set("old", "v1", 0), replica_set("new", "v2", 10, revision=2)
    rollout = plan(Snapshot(d, sets, {}), NOW)
    assert not any(isinstance(a, Update) and a.obj is d for s in rollout.stages for a in s.actions)
    found = status(rollout, Outcome(), NOW)
    assert found is not None and reasons(found.status)["Progressing"] == ("True", "NewReplicaSetCreated")
    create = next(a for s in rollout.stages for a in s.actions if isinstance(a, Create))
    assert isinstance(create.body, dict)
    assert create.body["metadata"]["annotations"][spec.REVISION] == "3"  # type: ignore[index]
    made = planned(d, *sets, replica_set("newest", "v3", 0, revision=3))
    update = next(a for s in made for a in s.actions if isinstance(a, Update) and a.obj is d)
    assert update.changes[("spec", "template")] == template("v2")


def test_the_first_template_has_no_revision_to_go_back_to() -> None:
    made = planned(deployment(meta={"annotations": {spec.ROLLBACK_TO: "0"}}), replica_set("new", "v2", 10))
    events = [a.done.message for s in made for a in s.actions if a.done is not None]
    assert events == ["Unable to find last revision."]


ROLLBACKS = [
    pytest.param("9", "DeploymentRollbackRevisionNotFound", id="no-such-revision"),
    pytest.param("2", "DeploymentRollbackTemplateUnchanged", id="the-same-template"),
]


@pytest.mark.parametrize(("revision", "reason"), ROLLBACKS)
def test_a_rollback_without_a_change_is_reported(revision: str, reason: str) -> None:
    d = deployment(meta={"annotations": {spec.ROLLBACK_TO: revision}})
    made = planned(d, replica_set("old", "v1", 0), replica_set("new", "v2", 10, revision=2))
    events = [a.done.reason for s in made for a in s.actions if a.done is not None]
    assert events == [reason]


def done_status(replicas: int) -> DeploymentStatus:
    return DeploymentStatus(
        replicas=replicas,
        updated_replicas=replicas,
        ready_replicas=replicas,
        available_replicas=replicas,
        observed_generation=2,
    )


def test_history_beyond_the_limit_is_deleted_oldest_first_after_the_rollout() -> None:
    d = deployment(2, revision_history_limit=1, status=done_status(2))
    sets = [replica_set(f"r{n}", f"old{n}", 0, revision=n, desired=2, most=3) for n in (1, 2, 3)]
    made = planned(d, replica_set("new", "v2", 2, revision=4, desired=2, most=3), *sets)
    assert [a.name for s in made for a in s.actions if isinstance(a, Delete)] == ["r1", "r2"]


def test_history_with_pods_is_kept() -> None:
    d = deployment(2, revision_history_limit=0, status=done_status(2))
    old = replica_set("r1", "old", 0, running=1, desired=2, most=3)
    made = planned(d, replica_set("new", "v2", 2, revision=2, desired=2, most=3), old)
    assert not [a for s in made for a in s.actions if isinstance(a, Delete)]


# -- revisions


def test_an_older_replica_set_that_becomes_the_new_one_again_keeps_its_history() -> None:
    d = deployment()
    again = replica_set("again", "v2", 0, revision=1)
    made = planned(d, again, replica_set("old", "v1", 10, revision=2))
    (update,) = [a for s in made for a in s.actions if isinstance(a, Update) and a.obj is again]
    notes = update.changes[("metadata", "annotations")]
    assert isinstance(notes, dict)
    assert (notes[spec.REVISION], notes[spec.REVISION_HISTORY]) == ("3", "1")


def test_negative_revisions_of_old_replica_sets_do_not_count() -> None:
    made = planned(deployment(), replica_set("old", "v1", 10, revision=-5))
    (notes,) = [a.body["metadata"]["annotations"] for s in made for a in s.actions if isinstance(a, Create)]  # type: ignore[index]
    assert notes[spec.REVISION] == "1"


def test_annotations_follow_the_deployment_except_internal_ones() -> None:
    d = deployment(meta={"annotations": {"team": "a", LAST_APPLIED: "{}"}})
    made = planned(d, replica_set("new", "v2", 10))
    (update,) = [a for s in made for a in s.actions if isinstance(a, Update)]
    notes = update.changes[("metadata", "annotations")]
    assert isinstance(notes, dict)
    assert notes["team"] == "a" and LAST_APPLIED not in notes


def test_long_names_are_truncated_before_the_hash() -> None:
    name = replica_set_name("x" * 253, "abc")
    assert len(name) == 253 and name.endswith("x-abc")


SAME = [
    pytest.param({"spec": {"affinity": None}}, {"spec": {}}, True, id="null-is-absent"),
    pytest.param({"spec": {"tolerations": []}}, {"spec": {}}, True, id="an-empty-list-is-absent"),
    pytest.param({"spec": {"overhead": {"cpu": "1"}}}, {"spec": {"overhead": {"cpu": "1000m"}}}, True, id="quantity"),
    pytest.param(
        {"metadata": {"annotations": {"creationTimestamp": "a"}}},
        {"metadata": {"annotations": {"creationTimestamp": "b"}}},
        False,
        id="an-annotation-of-any-name",
    ),
    pytest.param({"spec": {"securityContext": {}}}, {"spec": {}}, False, id="an-empty-object-is-there"),
    pytest.param(
        {"metadata": {"labels": {"a": "b", spec.HASH_LABEL: "x"}}},
        {"metadata": {"labels": {"a": "b"}}},
        True,
        id="hash",
    ),
]


@pytest.mark.parametrize(("left", "right", "same"), SAME)
def test_templates(left: dict[str, object], right: dict[str, object], same: bool) -> None:
    assert same_template(left, right) is same


# -- status


def status_of(
    d: Deployment, *sets: ReplicaSet, outcome: Outcome | None = None, now: datetime = NOW
) -> DeploymentStatus:
    rollout = plan(Snapshot(d, sets, {}), now)
    done = Outcome(tuple(Done(a) for s in rollout.stages for a in s.actions))
    found = status(rollout, outcome or done, now)
    assert found is not None
    return found.status


def reasons(found: DeploymentStatus) -> dict[str, tuple[str, str]]:
    return {c.type: (c.status, c.reason) for c in found.conditions}


def test_a_finished_rollout() -> None:
    found = status_of(deployment(), replica_set("new", "v2", 10))
    assert (found.replicas, found.updated_replicas, found.available_replicas) == (10, 10, 10)
    assert reasons(found) == {
        "Progressing": ("True", "NewReplicaSetAvailable"),
        "Available": ("True", "MinimumReplicasAvailable"),
    }


def test_a_rollout_in_progress() -> None:
    found = status_of(deployment(), replica_set("old", "v1", 10))
    assert reasons(found)["Progressing"] == ("True", "ReplicaSetUpdated")
    assert found.updated_replicas == 0


@pytest.mark.parametrize("found", [DeploymentStatus(), DeploymentStatus(replicas=4, updated_replicas=1)])
def test_an_old_replica_set_that_becomes_the_new_one_is_progress_though_it_is_scaled_first(
    found: DeploymentStatus,
) -> None:
    made = deployment(3, status=found)
    sets = (replica_set("new", "v2", 2, 0, desired=4), replica_set("old", "v1", 3, 0, desired=4, revision=2))
    scaling = status_of(made, *sets)
    assert reasons(scaling)["Progressing"] == ("True", "ReplicaSetUpdated")
    assert (scaling.replicas, scaling.updated_replicas) == (5, 2)
    sets = (replica_set("new", "v2", 2, 0, desired=3, revision=3), replica_set("old", "v1", 2, 0, desired=3))
    seen = status_of(msgspec.structs.replace(made, status=scaling), *sets)
    assert reasons(seen)["Progressing"] == ("True", "ReplicaSetUpdated")
    assert (seen.replicas, seen.updated_replicas) == (4, 2)


def test_a_replica_set_that_is_adopted_and_scaled_is_found() -> None:
    made = deployment(2)
    scaling = status_of(made, replica_set("new", "v2", 3, 0, desired=3))
    seen = status_of(
        msgspec.structs.replace(made, status=scaling), replica_set("new", "v2", 2, 0, desired=2, running=3)
    )
    assert (scaling.updated_replicas, reasons(seen)["Progressing"]) == (3, ("True", "FoundNewReplicaSet"))


def progressing(age_s: int) -> DeploymentStatus:
    since = format_time(NOW - timedelta(seconds=age_s))
    condition = Condition("Progressing", "True", "ReplicaSetUpdated", "", last_update_time=since)
    return DeploymentStatus(replicas=3, updated_replicas=3, conditions=(condition,))


def test_a_rollout_without_progress_times_out() -> None:
    d = deployment(3, status=progressing(601))
    assert reasons(status_of(d, replica_set("new", "v2", 3, 0, desired=3)))["Progressing"] == (
        "False",
        "ProgressDeadlineExceeded",
    )


def test_a_rollout_whose_progress_has_no_time_has_timed_out() -> None:
    condition = Condition("Progressing", "True", "ReplicaSetUpdated", "")
    d = deployment(3, status=DeploymentStatus(replicas=3, updated_replicas=3, conditions=(condition,)))
    sets = (replica_set("new", "v2", 3, 0, desired=3),)
    assert reasons(status_of(d, *sets))["Progressing"] == ("False", "ProgressDeadlineExceeded")
    rollout = plan(Snapshot(d, sets, {}), NOW)
    assert next_check_s(rollout, d.status, NOW) == 1.0


def test_a_rollout_is_requeued_at_its_deadline() -> None:
    d = deployment(3, status=progressing(100))
    rollout = plan(Snapshot(d, (replica_set("new", "v2", 3, 0, desired=3),), {}), NOW)
    assert next_check_s(rollout, d.status, NOW) == 501.0


def test_a_failed_creation_is_reported() -> None:
    d = deployment()
    rollout = plan(Snapshot(d, (), {}), NOW)
    failed = Outcome(failed=(Failed(rollout.stages[0].actions[0], RuntimeError("quota")),))
    found = status(rollout, failed, NOW)
    assert found is not None and reasons(found.status)["Progressing"] == ("False", "ReplicaSetCreateError")
    assert found.annotations == d.annotations  # no ReplicaSet has the new revision


def test_after_a_refused_update_the_status_has_the_present_size() -> None:
    d = deployment(5)
    rollout = plan(Snapshot(d, (replica_set("new", "v2", 3, desired=3, most=4),), {}), NOW)
    assert sizes(rollout.stages) == {"new": 5}
    refused = Outcome(failed=tuple(Failed(a, RuntimeError("no")) for s in rollout.stages for a in s.actions))
    found = status(rollout, refused, NOW)
    assert found is not None and (found.status.available_replicas, found.status.unavailable_replicas) == (3, 0)
    assert found.annotations == d.annotations


def test_an_existing_name_counts_as_a_collision() -> None:
    class Taken(Exception):
        reason = "AlreadyExists"

    d = deployment()
    rollout = plan(Snapshot(d, (), {}), NOW)
    found = status(rollout, Outcome(failed=(Failed(rollout.stages[0].actions[0], Taken()),)), NOW)
    assert found is not None and found.status.collision_count == 1


def test_a_failure_of_a_replica_set_is_a_condition() -> None:
    failing = replica_set("new", "v2", 10, 0)
    condition = Condition("ReplicaFailure", "True", "FailedCreate", "no")
    failing = msgspec.structs.replace(failing, status=msgspec.structs.replace(failing.status, conditions=(condition,)))
    assert reasons(status_of(deployment(), failing))["ReplicaFailure"] == ("True", "FailedCreate")


def test_pausing_and_resuming_are_conditions() -> None:
    paused = status_of(deployment(paused=True), replica_set("new", "v2", 10))
    assert reasons(paused)["Progressing"] == ("Unknown", "DeploymentPaused")
    resumed = status_of(deployment(status=paused), replica_set("new", "v2", 5, 0))
    assert reasons(resumed)["Progressing"] == ("Unknown", "DeploymentResumed")


def test_without_a_deadline_progress_is_not_checked() -> None:
    found = status_of(deployment(progress_deadline_seconds=spec.MAX_INT32), replica_set("new", "v2", 10))
    assert "Progressing" not in reasons(found)


def test_an_unknown_strategy_rolls_nothing_out():
    """As upstream."""
    d = deployment(2, strategy=DeploymentStrategy("Canary"))
    with pytest.raises(SyncError, match="unexpected deployment strategy type: Canary"):
        plan(Snapshot(d, (), {}), NOW)
