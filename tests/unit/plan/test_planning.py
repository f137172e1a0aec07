"""Plans on a simulated cluster: the results of a change."""

import gc
import sys

import pytest

from kcm_cli.api.core import PODS
from kcm_cli.api.well_known import HOSTNAME
from kcm_cli.plan import (
    AddNode,
    Answer,
    Apply,
    Change,
    Delete,
    Drain,
    FailNode,
    Options,
    PlanError,
    RemoveNode,
    Scale,
    SetImage,
    Target,
    plan,
)
from kcm_cli.plan.applying import node_like
from tests.kit.simulation import NAMESPACE, World
from tests.kit.workload import deployment
from tests.unit.plan.clusters import crowded, settled, snapshot_of

WEB = Target("deploy", "web", NAMESPACE)


def planned(*changes: Change, horizon_s: float = 600.0, **options: object) -> Answer:
    return plan(settled(), changes, Options(horizon_s=horizon_s, **options))  # type: ignore[arg-type]


def problems(answer: Answer) -> set[tuple[str, str]]:
    return {(one.kind, str(one.about)) for one in answer.problems if not one.already}


def differences(answer: Answer) -> set[tuple[str, str, int]]:
    return {(one.action, str(one.about), one.count) for one in answer.differences}


def test_nothing_is_written_to_a_settled_cluster() -> None:
    answer = planned()
    assert answer.audit == ()
    assert answer.routine > 0
    assert not answer.changed


def test_a_drain_evicts_what_its_budgets_allow() -> None:
    answer = planned(Drain("node-1"))
    (blocked,) = [one for one in answer.timeline if one.what == "blocked"]
    assert blocked.about.name.startswith("db-")
    assert "disruption budget db" in blocked.detail
    assert problems(answer) == {("pdb", str(blocked.about)), ("drain", "Node node-1")}
    assert answer.totals.evictions == len([one for one in answer.timeline if one.what == "evicted"]) > 0
    assert not any(one.what == "drained" for one in answer.timeline)


def test_a_failed_node_loses_its_pods_after_five_minutes() -> None:
    answer = planned(FailNode("node-2"))
    silent = next(one for one in answer.timeline if (one.what, one.detail) == ("node", "NotReady"))
    assert 30 <= silent.at_s <= 60
    deleted = next(one for one in answer.timeline if one.what == "terminating")
    assert 300 <= deleted.at_s - silent.at_s <= 310
    assert ("stuck", "StatefulSet sim/db") in problems(answer)  # its pod is only Terminating: nobody confirms


def test_pods_of_a_deleted_node_are_deleted_and_recreated() -> None:
    answer = planned(RemoveNode("node-3"))
    assert ("deleted", "Node node-3", 1) in differences(answer)
    assert problems(answer) == set()
    assert all(fill.node != "node-3" or fill.pods == 0 for fill in answer.nodes)


def test_pods_beyond_the_capacity_are_pending() -> None:
    answer = plan(crowded(), (Scale(WEB, 36),), Options(120))
    (problem,) = [one for one in answer.problems if one.kind == "pending"]
    assert str(problem.about) == "Deployment sim/web"
    assert "Too many pods" in problem.text
    room = plan(crowded(), (Scale(WEB, 36), AddNode("node-1")), Options(120))
    assert [one for one in room.problems if one.kind == "pending"] == []


def test_nodes_are_added_under_names_that_are_free() -> None:
    """Of a long name, the label has what fits into one."""
    answer = plan(settled(), [AddNode("node-1"), AddNode("node-1", 2)], Options(5))
    names = [one.about.name for one in answer.differences if one.about.kind == "Node" and one.action == "created"]
    assert names == ["node-1-copy-1", "node-1-copy-2", "node-1-copy-3"] and answer.problems == ()
    assert node_like({}, f"a.{'b' * 62}", "now")["metadata"]["labels"][HOSTNAME] == "b" * 62


def test_a_new_image_rolls_out() -> None:
    answer = planned(SetImage(WEB, "web:2"))
    assert problems(answer) == set()
    assert any(one.what == "complete" and str(one.about) == "Deployment sim/web" for one in answer.timeline)
    (web,) = [one for one in answer.differences if str(one.about) == "Deployment sim/web"]
    assert ("spec.template.spec.containers[c].image", "v1", "web:2") in [
        (f.path, f.before, f.after) for f in web.fields
    ]
    assert answer.assumed == ("image web:2, which no node has, can be pulled",)


def test_a_deletion_completes_no_rollout() -> None:
    answer = planned(Delete(WEB, "Orphan"))
    assert ("deleted", "Deployment sim/web", 1) in differences(answer)
    assert [one.what for one in answer.timeline if str(one.about) == "Deployment sim/web"] == []


def test_problems_of_an_image_that_cannot_be_pulled() -> None:
    (risk,) = planned(SetImage(WEB, "web:2"), horizon_s=900).risks
    assert risk.text == "if web:2 cannot be pulled"
    (problem,) = risk.problems
    assert (problem.kind, str(problem.about)) == ("stuck", "Deployment sim/web")
    assert "ImagePullBackOff (web:2)" in problem.text
    assert planned(SetImage(WEB, "v1")).risks == ()


def test_an_impossible_registry() -> None:
    answer = planned(SetImage(WEB, "registry.invalid/web:2"))
    assert problems(answer) == {("image", "Image registry.invalid/web:2"), ("stuck", "Deployment sim/web")}


def test_a_pod_of_the_same_name_is_another_one() -> None:
    answer = planned(Delete(Target("pod", "db-1", NAMESPACE)))
    assert ("replaced", "Pod sim/db-1", 1) in differences(answer)


def test_labels_narrow_the_whole_answer() -> None:
    changes = [Scale(WEB, 40), Scale(Target("deploy", "api", NAMESPACE), 30), Drain("node-1")]
    whole, web = plan(crowded(), changes, Options(120)), plan(crowded(), changes, Options(120, selector="app=web"))
    assert {one.about.name.partition("-")[0] for one in whole.problems} == {"web", "api", "db", "node"}
    assert {one.about.name for one in web.problems if not one.elsewhere} == {"web"}
    assert {(one.kind, one.about) for one in web.problems} == {(one.kind, one.about) for one in whole.problems}
    assert {one.about.name.partition("-")[0] for one in web.timeline} == {"web"}
    assert {one.about.name.partition("-")[0] or one.owner[:14] for one in web.differences} <= {"web", "ReplicaSet/web"}
    assert {one.owner.partition("-")[0] for one in web.writes} <= {
        "",
        "Deployment/web",
        "ReplicaSet/web",
        "Service/web",
    }
    assert 0 < sum(one.count for one in web.writes) < sum(one.count for one in whole.writes)
    assert 0 < web.totals.pods_created < whole.totals.pods_created


def test_a_namespace_narrows_the_whole_answer() -> None:
    answer = plan(crowded(), [Scale(WEB, 40)], Options(120, namespace="default"))
    assert (answer.timeline, answer.differences, answer.writes) == ((), (), ())
    assert answer.totals.pods_created == 0
    assert {(one.kind, one.elsewhere) for one in answer.problems} == {("pending", True), ("stuck", True)}


def test_dependents_can_be_orphaned() -> None:
    answer = planned(Delete(WEB, "Orphan"))
    assert ("deleted", "Deployment sim/web", 1) in differences(answer)
    assert not any(one.action == "deleted" and one.about.kind in ("ReplicaSet", "Pod") for one in answer.differences)


def test_an_invalid_image_blocks_the_rollout() -> None:
    answer = planned(SetImage(WEB, "web:not a tag"), horizon_s=1200)
    assert problems(answer) == {("image", "Image web:not a tag"), ("stuck", "Deployment sim/web")}
    late = next(one for one in answer.timeline if one.what == "stuck")
    assert 600 <= late.at_s <= 660


def test_a_deletion_deletes_dependents() -> None:
    answer = planned(Delete(WEB))
    gone = {about for action, about, _ in differences(answer) if action == "deleted"}
    assert "Deployment sim/web" in gone
    assert len([one for one in gone if one.startswith("Pod sim/web-")]) == 5


def test_a_refused_manifest_is_reported_as_by_kubectl() -> None:
    doc = deployment("bad", -1)
    answer = planned(Apply(doc, "app.yaml, document 1"), horizon_s=10)
    (problem,) = [one for one in answer.problems if one.kind == "refused"]
    assert problem.text.startswith(
        'Error from server (Invalid): error when creating "app.yaml, document 1": Deployment'
    )
    assert "spec.replicas" in problem.text


def test_a_field_of_another_manager_is_a_conflict_unless_it_is_forced() -> None:
    change = Apply(deployment("web", 7))
    (problem,) = [one for one in planned(change, horizon_s=10, server_side=True).problems if one.kind == "refused"]
    assert problem.text.startswith('error: Apply failed with 1 conflict: conflict with "sim"')
    assert ".spec.replicas" in problem.text
    forced = planned(change, horizon_s=60, force_conflicts=True)
    assert problems(forced) == set()
    assert ("created", "Pod sim/", 2) in differences(forced)


def test_new_objects_of_a_manifest_are_listed() -> None:
    answer = planned(Apply(deployment("new", 2)))
    assert {("created", "Deployment sim/new", 1), ("created", "Pod sim/", 2)} <= differences(answer)


def config_map(name: str, **metadata: object) -> dict[str, object]:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, **metadata}}


def nested(levels: int) -> object:
    value: object = {}
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (Drain("node-9"), 'Error from server (NotFound): nodes "node-9" not found'),
        (FailNode("zone=x"), "error: no node has the label zone=x"),
        (Scale(Target("deploy", "nope", NAMESPACE), 1), "not found"),
        (Scale(Target("nodes", "node-1"), 1), "cannot be scaled"),
        (Delete(Target("secret", "x")), "error: secret/x is not in the snapshot: secrets: never read"),
        (Delete(Target("unicorns", "x")), 'error: the server doesn\'t have a resource type "unicorns"'),
        (SetImage(Target("deploy", "web", NAMESPACE), "v2", "other"), "has no container other"),
        (Apply({"kind": "Unicorn", "apiVersion": "v1", "metadata": {"name": "x"}}), "no matches for kind"),
        (Drain("node-role.kubernetes.io/x"), "error: no node has the label node-role.kubernetes.io/x"),
        (Apply({"kind": "Pod", "apiVersion": "v1"}), "metadata.name is missing"),
        (Apply({**config_map("a"), "metadata": {"name": 5}}), "metadata.name is no string"),
        (Apply(config_map("a", namespace=5)), "metadata.namespace: a number instead of string"),
        (Apply(config_map("a", annotations=["a"])), "metadata.annotations: a list instead of an object"),
        (Apply({"kind": "ConfigMap", "metadata": {"name": "a"}}), "apiVersion is missing"),
        (Apply({**config_map("a"), "apiVersion": ["v1"]}), "apiVersion is no string"),
        (Apply({**config_map("a"), "kind": {"a": "b"}}), "kind is no string"),
        (
            Apply({"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": ["a"]}),
            'no matches for kind "Kustomization" in version "kustomize.config.k8s.io/v1beta1" (kustomize build',
        ),
        (Apply(config_map("a/b")), "error: manifest: invalid resource name \"a/b\": [may not contain '/']"),
        (Apply(config_map("..")), "invalid resource name \"..\": [may not be '..']"),
        (Apply(config_map("a", namespace="x%2f")), "invalid namespace \"x%2f\": [may not contain '%']"),
        pytest.param(
            Apply({**config_map("a"), "data": nested(600)}),
            "error: manifest: it is nested too deep",
            marks=pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python goes deeper"),
        ),
        (
            Apply({"kind": "Pod", "apiVersion": "v1", "metadata": {"generateName": "a-"}}),
            "from a-: cannot use generate name with apply",
        ),
    ],
)
def test_an_impossible_change_is_one_clear_line(change: Change, text: str) -> None:
    with pytest.raises(PlanError) as raised:
        planned(change, horizon_s=1)
    assert text in str(raised.value)
    assert "\n" not in str(raised.value)


def test_the_same_snapshot_and_seed_give_the_same_bytes() -> None:
    one, other = (planned(Scale(WEB, 9), horizon_s=120, seeds=(1, 2)).json() for _ in range(2))
    assert one == other


def test_a_process_keeps_what_it_has_frozen() -> None:
    """Garbage collection looks at all of it again otherwise."""
    gc.freeze()
    frozen = gc.get_freeze_count()
    planned(Scale(WEB, 9), horizon_s=1)
    assert gc.get_freeze_count() > frozen // 2


def test_an_orphan_is_found_by_the_audit() -> None:
    async def orphaned(world: World) -> None:
        await world.create("apps/v1/deployments", deployment("web", 2))
        await world.clock.sleep(60)
        stored = next(iter(world.objects("apps/v1/replicasets")))
        metadata = stored["metadata"]
        assert isinstance(metadata, dict)
        body = {"spec": {"replicas": 1}}
        from kcm_cli.api.apps import REPLICA_SETS

        await world.client.patch(REPLICA_SETS, NAMESPACE, metadata["name"], body)

    answer = plan(snapshot_of(orphaned), (), Options(horizon_s=120))
    assert ("deployment-controller", "update", "replicasets.apps") in [
        (one.controller, one.verb, one.resource) for one in answer.audit
    ]


@pytest.mark.parametrize("odd", [None, 3, "k", {"k": "v"}, ["k", None]])
def test_a_node_is_copied_without_unknown_fields(odd: object) -> None:
    made = node_like({"metadata": odd, "spec": {"taints": odd}, "status": {"conditions": odd}}, "n", "now")
    attaches = {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
    assert made["metadata"] == {"name": "n", "labels": {"kubernetes.io/hostname": "n"}, "annotations": attaches}
    assert made["spec"] == {}
    kept = {"key": "a", "effect": "NoSchedule"}
    taints = [kept, {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]
    assert node_like({"spec": {"taints": taints}}, "n", "now")["spec"] == {"taints": [kept]}


def test_the_availability_is_told_over_time() -> None:
    lost = {one.about.name: one for one in planned(FailNode("node-2")).availability if one.about.kind != "Service"}
    web, database = lost["web"], lost["db"]
    there = [pod["metadata"]["name"] for pod in settled().docs(PODS.gvr) if pod["spec"]["nodeName"] == "node-2"]
    lowest = 5 - sum(name.startswith("web-") for name in there)
    assert (web.before, web.wanted, web.lowest) == (5, 5, lowest) and lowest < 5
    assert web.ready[0] == (0.0, 5) and web.ready[-1][1] == 5
    assert web.below_s == pytest.approx(web.ready[-1][0] - web.ready[1][0], abs=0.1)
    assert database.below_s == pytest.approx(600.0 - database.ready[1][0], abs=0.1)  # its pod is not replaced


def test_fewer_replicas_are_no_loss_and_deletion_is_one() -> None:
    scaled = planned(Scale(WEB, 1)).availability
    assert [(one.before, one.wanted, one.lowest, one.below_s) for one in scaled] == [(5, 1, 1, 0.0)] * 2
    gone = planned(Delete(WEB)).availability
    assert [(str(one.about), one.lowest, one.below_s) for one in gone] == [
        ("Deployment sim/web", 0, 600.0),
        ("Service sim/web", 0, 600.0),
    ]
    assert planned().availability == ()
