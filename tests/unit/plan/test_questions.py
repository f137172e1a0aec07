"""Custom resources: the kinds that a change names are planned without a flag."""

from pathlib import Path
from typing import Any

import pytest

from kcm_cli.machinery import codec
from kcm_cli.plan import Answer, Apply, Change, Delete, Options, PlanError, Scale, SetImage, Target, load, plan, save
from kcm_cli.plan.changes import custom_kinds
from kcm_cli.plan.collect import collect
from kcm_cli.plan.kinds import DEFINITIONS
from kcm_cli.plan.snapshot import Snapshot
from kcm_cli.rest.transport import Request
from tests.kit.simulation import NAMESPACE, World
from tests.kit.workload import deployment
from tests.unit.plan.clusters import client, living

Tree = dict[str, Any]


def definition(plural: str, kind: str) -> Tree:
    names = {
        "kind": kind,
        "plural": plural,
        "singular": kind.lower(),
        "listKind": f"{kind}List",
        "shortNames": [plural[:2]],
    }
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]}
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return {**head, "metadata": {"name": f"{plural}.example.com"}, "spec": spec}


def custom(kind: str, name: str, **spec: object) -> Tree:
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "example.com/v1", "kind": kind, "metadata": metadata, "spec": spec}


async def with_operators(world: World) -> None:
    """Two custom kinds; a Thing owns a Deployment."""
    for doc in (definition("things", "Thing"), definition("others", "Other")):
        headers = {"content-type": "application/json"}
        await world.client.call(Request("POST", DEFINITIONS.gvr.path(), (), headers, codec.encode(doc)))
    await world.clock.sleep(5)
    await world.create("example.com/v1/things", custom("Thing", "one", size=1))
    await world.create("example.com/v1/others", custom("Other", "one", size=1))
    path = f"/apis/example.com/v1/namespaces/{NAMESPACE}/things/one"
    metadata: Any = codec.decode_doc(await world.client.call(Request("GET", path)))["metadata"]
    owned = deployment("owned", 1)
    ref = {"apiVersion": "example.com/v1", "kind": "Thing", "name": "one", "uid": metadata["uid"], "controller": True}
    owned["metadata"]["ownerReferences"] = [ref]
    await world.create("apps/v1/deployments", owned)
    await world.clock.sleep(60)


def taken(*changes: Change) -> Snapshot:
    """What a plan for these changes reads."""
    runner, world = living(with_operators)

    async def read() -> Snapshot:
        return await collect(client(world.server.transport(), world), world.clock, custom=custom_kinds(changes))

    return runner.run(read())


def planned(snapshot: Snapshot, *changes: Change) -> Answer:
    return plan(snapshot, changes, Options(120))


@pytest.mark.parametrize(
    "change",
    [
        Apply(custom("Thing", "one", size=2)),
        Apply(custom("Thing", "two")),
        *(Delete(Target(word, "one", NAMESPACE)) for word in ("thing", "things", "Thing", "th", "things.example.com")),
    ],
)
def test_the_objects_of_a_kind_in_question_are_read(change: Change) -> None:
    snapshot = taken(change)
    names = {gvr.plural: len(one.items) for gvr, one in snapshot.collections.items()}
    assert names["things"] == 1 and "others" not in names and names["customresourcedefinitions"] == 2
    answer = planned(snapshot, change)
    assert answer.assumed == ()
    assert "Thing" in {one.about.kind for one in answer.differences}


def test_a_deleted_owner_takes_its_dependents_along() -> None:
    change = Delete(Target("thing", "one", NAMESPACE))
    answer = planned(taken(change), change)
    assert ("deleted", "Deployment sim/owned") in {(one.action, str(one.about)) for one in answer.differences}


def test_without_their_objects_those_of_a_manifest_are_taken_for_new(tmp_path: Path) -> None:
    save(taken(), tmp_path / "cluster.kcm")
    answer = planned(load(tmp_path / "cluster.kcm"), Apply(custom("Thing", "two", size=3)))
    assert answer.assumed == ("objects of kind Thing in manifests are new: the snapshot has none",)
    assert [(one.action, str(one.about)) for one in answer.differences] == [("created", "Thing sim/two")]


@pytest.mark.parametrize(
    "change", [Delete(Target("thing", "two", NAMESPACE)), Scale(Target("th", "two", NAMESPACE), 2)]
)
def test_an_object_of_a_kind_that_the_snapshot_lacks_is_not_called_missing(change: Change, tmp_path: Path) -> None:
    save(taken(), tmp_path / "cluster.kcm")
    with pytest.raises(PlanError, match=r"/two is not in the snapshot: things.example.com: not read without --include"):
        planned(load(tmp_path / "cluster.kcm"), change)
    with pytest.raises(PlanError, match=r'\(NotFound\): things.example.com "two" not found in namespace sim'):
        planned(taken(change), change)


def test_an_owner_that_the_snapshot_lacks_can_be_deleted(tmp_path: Path) -> None:
    save(taken(), tmp_path / "cluster.kcm")
    answer = planned(load(tmp_path / "cluster.kcm"), Delete(Target("thing", "one", NAMESPACE)))
    assert answer.assumed == ("objects of kind Thing, which the snapshot does not have, make no difference",)
    assert ("deleted", "Deployment sim/owned") in {(one.action, str(one.about)) for one in answer.differences}


def test_a_definition_and_its_objects_in_one_file() -> None:
    changes = [Apply(definition("news", "New")), Apply(custom("New", "x"))]
    answer = planned(taken(), *changes)
    assert answer.problems == ()
    assert ("created", "New sim/x") in {(one.action, str(one.about)) for one in answer.differences}


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
def test_what_was_not_read_is_shown_as_created_and_the_answer_says_so(kind: str) -> None:
    doc = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "x", "namespace": NAMESPACE}}
    answer = planned(taken(), Apply(doc))
    text = f"whether objects of kind {kind} in manifests are there was not read: they are shown as created"
    assert answer.not_modelled[0] == text and answer.assumed == ()
    assert not any("shown as created" in line for line in planned(taken()).not_modelled)


def test_another_apis_kind_of_a_workloads_plural_has_no_pod_template() -> None:
    changes = [Apply(definition("jobs", "Task")), Apply(custom("Task", "x", template=["odd"]))]
    with pytest.raises(PlanError, match=r"jobs.example.com/x has no pod template"):
        planned(taken(), *changes, SetImage(Target("jobs.example.com", "x", NAMESPACE), "a:1"))


def test_another_apis_kind_of_a_built_in_name_is_called_with_its_group() -> None:
    """As Knative's Service, which has a Service of the same name."""
    answer = planned(taken(), Apply(definition("routes", "Service")), Apply(custom("Service", "web")))
    assert ("created", "Service.example.com sim/web") in {(one.action, str(one.about)) for one in answer.differences}


def test_kinds_in_question_by_their_names() -> None:
    changes = (Apply(custom("Thing", "x")), Delete(Target("widget.example.com", "x")), Delete(Target("deploy", "web")))
    assert custom_kinds(changes) == {"thing.example.com", "widget.example.com", "deploy"}
    assert custom_kinds([Apply({"kind": 7, "apiVersion": None})]) == {"."}


def test_a_definition_that_is_applied_again_changes_nothing(tmp_path: Path) -> None:
    change = Apply(definition("things", "Thing"))
    save(taken(), tmp_path / "cluster.kcm")
    for snapshot in (taken(change), load(tmp_path / "cluster.kcm")):
        assert {(one.action, str(one.about)) for one in planned(snapshot, change).differences} <= {
            ("changed", "CustomResourceDefinition things.example.com")
        }


@pytest.mark.parametrize("word", ["crd", "CustomResourceDefinition", "customresourcedefinitions.apiextensions.k8s.io"])
def test_a_deleted_definition_takes_its_objects_and_their_dependents_along(word: str) -> None:
    change = Delete(Target(word, "things.example.com"))
    found = {(one.action, str(one.about)) for one in planned(taken(change), change).differences}
    assert found >= {("deleted", "Thing sim/one"), ("deleted", "Deployment sim/owned")}


@pytest.mark.parametrize("word", ["ns", "namespace", "Namespaces"])
def test_custom_resources_may_keep_a_namespace_that_is_deleted(word: str) -> None:
    """By their finalizers: what was not read is an assumption."""
    change = Delete(Target(word, NAMESPACE))
    wanted = f"custom resources in namespace {NAMESPACE}, which were not read (--include custom), do not keep it"
    assert wanted in planned(taken(change), change).assumed
    runner, world = living(with_operators)
    whole = runner.run(collect(client(world.server.transport(), world), world.clock, include=("custom",)))
    assert wanted not in planned(whole, change).assumed
    assert not any(
        "custom resources" in one for one in planned(taken(), Delete(Target("deploy", "owned", NAMESPACE))).assumed
    )
