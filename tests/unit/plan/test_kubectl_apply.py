"""Manifests are applied as the reader's kubectl would apply them."""

from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kcm_cli.api.well_known import LAST_APPLIED
from kcm_cli.machinery import codec
from kcm_cli.plan import Answer, Apply, Delete, Drain, Options, PlanError, Problem, SetImage, load, plan, save
from kcm_cli.plan import Target as Named
from kcm_cli.plan.kubectl_apply import CLIENT_SIDE, KubectlApply, is_server_side, last_applied, taken_over
from kcm_cli.plan.snapshot import Snapshot
from kcm_cli.planning.actions import MERGE
from kcm_cli.rest.discovery import discover
from kcm_cli.rest.transport import Request
from kcm_cli.sandbox.apiserver.schema import Schemas, Target
from tests.kit.simulation import NAMESPACE, World
from tests.kit.workload import deployment, job, stateful_set, template
from tests.unit.plan.clusters import service, snapshot_of

Tree = dict[str, Any]
SCHEMAS = Schemas()


async def applying(world: World, doc: Tree) -> tuple[KubectlApply, str]:
    group, _, version = doc["apiVersion"].rpartition("/")
    served = (await discover(world.client)).find_kind(group, doc["kind"], version)
    assert served is not None
    return KubectlApply(world.client, served, SCHEMAS.node(Target(group, version, doc["kind"]))), doc["metadata"][
        "name"
    ]


async def client_side(world: World, *docs: Tree) -> None:
    for doc in docs:
        kubectl, name = await applying(world, doc)
        await kubectl.client_side(NAMESPACE, name, doc, await kubectl.live(NAMESPACE, name))


async def server_side(world: World, *docs: Tree) -> None:
    for doc in docs:
        kubectl, name = await applying(world, doc)
        await kubectl.server_side(NAMESPACE, name, doc, force=False)


def rich() -> Tree:
    doc = deployment("rich", 3)
    pod = doc["spec"]["template"]["spec"]
    pod["containers"][0] |= {"resources": {"limits": {"cpu": "100m"}}, "env": [{"name": "A", "value": "secret"}]}
    pod["nodeSelector"] = {"kubernetes.io/os": "linux"}
    doc["metadata"]["labels"] = {"team": "a"}
    return doc


def poor() -> Tree:
    """The same without fields that a template has."""
    doc = rich()
    pod = doc["spec"]["template"]["spec"]
    del pod["containers"][0]["resources"], pod["nodeSelector"], doc["metadata"]["labels"]
    return doc


def budget_of_pods(count: int) -> Tree:
    metadata = {"name": "quota", "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": {"pods": str(count)}}}


def limited(request: str, limit: str) -> Tree:
    doc = deployment("web", 2)
    resources = {"requests": {"cpu": request}, "limits": {"cpu": limit}}
    doc["spec"]["template"]["spec"]["containers"][0]["resources"] = resources
    return doc


OBJECTS = (rich(), limited("50m", "100m"), stateful_set("db", 2), job("work", 2), budget_of_pods(50), service("web"))


def lived(apply: Callable[..., Awaitable[None]]) -> Snapshot:
    async def story(world: World) -> None:
        await apply(world, *OBJECTS)
        await world.clock.sleep(60)

    return snapshot_of(story)


@cache
def made_client_side() -> Snapshot:
    return lived(client_side)


@cache
def made_server_side() -> Snapshot:
    return lived(server_side)


def planned(snapshot: Snapshot, doc: Tree, horizon_s: float = 120, **options: Any) -> Answer:
    return plan(snapshot, [Apply(doc, "app.yaml")], Options(horizon_s, **options))


def fields_of(answer: Answer, name: str) -> set[str]:
    found = [one for one in answer.differences if str(one.about) == name]
    return {
        field.path for one in found for field in one.fields if not field.path.startswith(("status", "metadata.ann"))
    }


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("server", [False, True])
@pytest.mark.parametrize("made", [made_client_side, made_server_side])
def test_fields_that_a_manifest_has_no_more_are_removed(
    made: Callable[[], Snapshot], server: bool, saved: bool, tmp_path: Path
) -> None:
    snapshot = made()
    if saved:
        save(snapshot, tmp_path / "cluster.kcm")
        snapshot = load(tmp_path / "cluster.kcm")
    answer = planned(snapshot, poor(), server_side=server)
    assert answer.problems == ()
    how = "server-side" if server or made is made_server_side else "client-side"
    assert answer.changes == (f"apply Deployment {NAMESPACE}/rich ({how})",)
    assert fields_of(answer, f"Deployment {NAMESPACE}/rich") == {
        "metadata.labels",
        "spec.template.spec.containers[c].resources.limits",
        "spec.template.spec.nodeSelector",
    }
    assert answer.totals.pods_created == answer.totals.pods_deleted == 3


@pytest.mark.parametrize("server", [False, True])
def test_the_same_manifest_changes_nothing(server: bool) -> None:
    for doc in OBJECTS:
        answer = planned(made_client_side(), doc, server_side=server)
        assert answer.problems == ()
        assert [one for one in answer.differences if one.about.kind == "Pod"] == []
        assert fields_of(answer, f"{doc['kind']} {NAMESPACE}/{doc['metadata']['name']}") == set()


def changed(doc: Tree, *path: str | int, value: object) -> Tree:
    copy: Tree = codec.decode_doc(codec.encode(doc))
    *above, last = path
    place: Any = copy
    for name in above:
        place = place[name]
    place[last] = value
    return copy


IMAGE = ("spec", "template", "spec", "containers", 0, "image")
INVALID = [
    pytest.param(changed(rich(), "spec", "replicas", value=-1), "spec.replicas", id="replicas"),
    pytest.param(
        changed(
            changed(rich(), "spec", "selector", "matchLabels", value={"app": "x"}),
            "spec",
            "template",
            value=template("x", "v1"),
        ),
        "field is immutable",
        id="selector",
    ),
    pytest.param(changed(job("work", 2), *IMAGE, value="x"), "field is immutable", id="template of a Job"),
    pytest.param(changed(stateful_set("db", 2), "spec", "serviceName", value="x"), "are forbidden", id="serviceName"),
    pytest.param(limited("200m", "100m"), "must be less than or equal to cpu limit", id="limit below request"),
    pytest.param(budget_of_pods(-3), "must be greater than or equal to 0", id="quota"),
    pytest.param(changed(rich(), *IMAGE[:-2], value=[]), "Required value", id="no containers"),
    pytest.param(changed(rich(), "spec", "strategy", value={"type": "Sometimes"}), "Unsupported value", id="strategy"),
    pytest.param(changed(service("web"), "spec", "ports", value=[{"port": 0}]), "must be between", id="port"),
    pytest.param(changed(rich(), "spec", "replicaz", value=3), "replicaz", id="unknown field"),
    pytest.param(changed(rich(), "spec", "replicas", value="three"), "replicas", id="wrong type"),
]  # fmt: skip


@pytest.mark.parametrize("server", [False, True])
@pytest.mark.parametrize("made", [made_client_side, made_server_side])
@pytest.mark.parametrize(("doc", "text"), INVALID)
def test_an_invalid_update_is_refused_with_the_servers_sentence(
    made: Callable[[], Snapshot], doc: Tree, text: str, server: bool
) -> None:
    answer = planned(made(), doc, horizon_s=1, server_side=server)
    (problem,) = answer.problems
    assert problem.kind == "refused" and not problem.already
    if problem.text.startswith("error: Apply failed"):  # a default that client-side apply owns, as on a real server
        assert server and made is made_client_side and ".spec.strategy.type" in problem.text
        return
    assert problem.text.startswith("Error from server")
    assert 'ing "app.yaml": ' in problem.text and "creating" not in problem.text
    assert text in problem.text
    assert answer.has(frozenset(("refused",)))


def test_fields_of_others_are_taken_client_side_and_refused_server_side() -> None:
    async def story(world: World) -> None:
        await world.create("apps/v1/deployments", deployment("web", 2))  # by another manager
        await world.clock.sleep(60)

    snapshot, doc = snapshot_of(story), deployment("web", 4)
    assert planned(snapshot, doc).totals.pods_created == 2
    (problem,) = planned(snapshot, doc, server_side=True).problems
    assert problem.text.startswith('error: Apply failed with 1 conflict: conflict with "sim"')
    assert planned(snapshot, doc, force_conflicts=True).totals.pods_created == 2


def test_what_client_side_applies_own_is_taken_over_as_by_kubectl() -> None:
    async def story(world: World) -> Tree:
        await client_side(world, rich())
        await world.clock.sleep(30)
        await server_side(world, poor())
        kubectl, name = await applying(world, rich())
        doc: Tree | None = await kubectl.live(NAMESPACE, name)
        assert doc is not None
        return doc

    from tests.kit.simulation import simulate

    doc = simulate(1, story)
    managers = {(one["manager"], one["operation"]) for one in doc["metadata"]["managedFields"]}
    assert {("kubectl", "Apply"), ("kubectl-last-applied", "Apply")} <= managers
    assert (CLIENT_SIDE, "Update") not in managers
    assert is_server_side(doc) and last_applied(doc)["metadata"].get("labels") is None  # type: ignore[union-attr]
    assert taken_over(doc) is None
    assert "nodeSelector" not in doc["spec"]["template"]["spec"] and "labels" not in doc["metadata"]


@pytest.mark.parametrize(
    "odd", [None, 7, "x", [], [7], [None], {"f:a": {}}, [{"operation": "Update"}], [{"fieldsV1": 3}]]
)
def test_odd_metadata_is_taken_for_none(odd: object) -> None:
    doc: Tree = {"metadata": {"managedFields": odd, "annotations": odd}}
    assert (taken_over(doc), is_server_side(doc), last_applied(doc)) == (None, False, {})
    assert last_applied({"metadata": {"annotations": {LAST_APPLIED: "null"}}}) == {}


@pytest.mark.parametrize("text", ["[]", "{", "x", '"x"'])
def test_a_last_applied_annotation_that_is_no_manifest_is_refused(text: str) -> None:
    async def story(world: World) -> None:
        doc = service("web")
        doc["metadata"]["annotations"] = {LAST_APPLIED: text}
        await world.create("v1/services", doc)

    (problem,) = planned(snapshot_of(story), service("web"), horizon_s=1).problems
    assert problem.kind == "refused"
    assert (
        problem.text.startswith('error: error when patching "app.yaml": ') and "invalid JSON document" in problem.text
    )


def test_a_list_without_its_merge_key_is_refused() -> None:
    """A chart's ``- name:`` without a value: the first apply creates the object, and each later one fails."""
    doc = changed(rich(), "spec", "template", "spec", "imagePullSecrets", value=[{"name": None}])
    created = planned(made_client_side(), changed(doc, "metadata", "name", value="new"))
    assert created.problems == ()

    async def story(world: World) -> None:
        await client_side(world, doc)
        await world.clock.sleep(30)

    (problem,) = planned(snapshot_of(story), doc, horizon_s=1).problems
    assert problem.kind == "refused" and problem.text.startswith('error: error when patching "app.yaml": ')
    assert problem.text.endswith("map: map[] does not contain declared merge key: name")


def test_one_of_two_protocols_of_a_port_takes_the_other_one_along() -> None:
    both = service("web")
    both["spec"]["ports"] = [{"name": name.lower(), "port": 53, "protocol": name} for name in ("TCP", "UDP")]

    async def story(world: World) -> None:
        await client_side(world, both)

    one = changed(both, "spec", "ports", value=both["spec"]["ports"][:1])
    (problem,) = planned(snapshot_of(story), one, horizon_s=1).problems
    assert problem.kind == "refused" and "spec.ports: Required value" in problem.text


@pytest.mark.parametrize("server", [False, True])
@pytest.mark.parametrize(
    ("metadata", "text"),
    [
        ({"annotations": {"b": True}}, "metadata.annotations[b]: boolean instead of string"),
        ({"annotations": {"b": 8080}}, "metadata.annotations[b]: a number instead of string"),
        ({"annotations": "b"}, "metadata.annotations: text instead of an object"),
        ({"labels": {"b": {}}}, "metadata.labels[b]: an object instead of string"),
        ({"finalizers": "a"}, "metadata.finalizers: text instead of a list"),
        ({"namespace": 5}, "metadata.namespace: a number instead of string"),
    ],
)
def test_metadata_that_kubectl_cannot_decode(metadata: Tree, text: str, server: bool) -> None:
    """kubernetes#59113: it once dropped all annotations."""
    doc = service("new")
    doc["metadata"] |= metadata
    with pytest.raises(PlanError) as raised:
        planned(made_client_side(), doc, server_side=server)
    assert str(raised.value) == f"error: app.yaml: {text}"


def test_an_exported_object_is_created_anew() -> None:
    doc = service("new")
    doc["metadata"] |= {"resourceVersion": "7", "uid": "x", "creationTimestamp": None, "generation": 3}
    answer = planned(made_client_side(), doc, horizon_s=1)
    assert not answer.has(frozenset(("refused",)))
    assert "Service sim/new" in {str(one.about) for one in answer.differences}


def test_an_annotation_that_is_null_is_empty() -> None:
    doc = service("new")
    doc["metadata"]["annotations"] = {"a": None}
    (one,) = (one for one in planned(made_client_side(), doc, horizon_s=1).differences if one.about.kind == "Service")
    assert one.action == "created"

    async def story(world: World) -> object:
        await client_side(world, doc)
        kubectl, name = await applying(world, doc)
        live = await kubectl.live(NAMESPACE, name)
        assert live is not None
        return live["metadata"]["annotations"]["a"]

    from tests.kit.simulation import simulate

    assert simulate(1, story) == ""


def test_names_without_a_namespace_are_in_that_of_the_context() -> None:
    doc = service("new")
    del doc["metadata"]["namespace"]
    snapshot = made_client_side()
    for namespace, told, expected in (
        ("", NAMESPACE, NAMESPACE),
        ("", "", "default"),
        ("default", NAMESPACE, "default"),
    ):
        answer = planned(replace(snapshot, namespace=told), doc, horizon_s=1, namespace=namespace)
        assert f"Service {expected}/new" in {str(one.about) for one in answer.differences}


def test_a_manifest_of_another_namespace_than_that_of_the_flag() -> None:
    """As charts have them; kubectl refuses them."""
    doc = changed(service("new"), "metadata", "namespace", value="default")
    answer = planned(made_client_side(), doc, horizon_s=1, namespace=NAMESPACE)
    assert answer.changes == (
        "apply Service default/new (client-side; kubectl apply -n sim refuses another namespace)",
    )
    assert not answer.has(frozenset(("refused",)))


def test_all_that_cannot_be_found_is_reported_at_once() -> None:
    unknown = {"apiVersion": "example.com/v1", "metadata": {"name": "x"}}
    changes = [
        *(Apply({**unknown, "kind": kind}, f"{kind}.yaml") for kind in ("A", "B")),
        *(Delete(Named("deploy", name)) for name in ("nope", "nope")),
        Drain("nowhere"),
    ]
    with pytest.raises(PlanError) as raised:
        plan(made_client_side(), changes, Options(1))
    lines = str(raised.value).split("\n")
    assert len(lines) == 4
    assert ["A.yaml" in lines[0], "B.yaml" in lines[1], "nope" in lines[2], "nowhere" in lines[3]] == [True] * 4


def test_a_refusal_by_quota_is_of_the_kind_quota() -> None:
    async def story(world: World) -> None:
        metadata = {"name": "few", "namespace": NAMESPACE}
        quota: Tree = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata}
        await world.create("v1/resourcequotas", {**quota, "spec": {"hard": {"services": "1"}}})
        await client_side(world, service("web"))
        await world.clock.sleep(30)

    problem: Problem
    (problem,) = planned(snapshot_of(story), service("api")).problems
    assert problem.kind == "quota" and "exceeded quota: few" in problem.text
    assert problem.text.startswith('Error from server (Forbidden): error when creating "app.yaml": services "api"')


def test_a_kustomization_says_what_to_do() -> None:
    doc = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "metadata": {"name": "x"}}
    with pytest.raises(PlanError, match="kustomize build"):
        planned(made_client_side(), doc)


def test_what_holds_a_template_back_is_told_where_it_changes() -> None:
    """By what the object is then: kubectl rollout pause is in no manifest, and defaults of a template are no change."""
    web, manual = deployment("web", 1), stateful_set("manual", 1)
    manual["spec"]["updateStrategy"] = {"type": "OnDelete"}
    for doc in (web, manual):
        doc |= {"apiVersion": "apps/v1"}
    web["kind"], manual["kind"] = "Deployment", "StatefulSet"

    async def story(world: World) -> None:
        await client_side(world, web, manual)
        path, body = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/web", codec.encode({"spec": {"paused": True}})
        await world.client.call(Request("PATCH", path, (), {"content-type": MERGE}, body))
        await world.clock.sleep(60)

    snapshot = snapshot_of(story)

    def remarks(image: str) -> list[str]:
        docs = codec.decode_doc(codec.encode({"items": [web, manual]}))["items"]
        for doc in docs:
            doc["spec"]["template"]["spec"]["containers"][0]["image"] = image
        return [line.partition(" (")[2] for line in plan(snapshot, [Apply(doc) for doc in docs], Options(30)).changes]

    image = web["spec"]["template"]["spec"]["containers"][0]["image"]
    assert remarks(image) == ["client-side)", "client-side)"]
    paused, on_delete = remarks("web:2")
    assert paused == "client-side; the Deployment is paused: no pod is replaced)"
    assert on_delete == "client-side; updateStrategy OnDelete: no pod is replaced until it is deleted)"


def test_the_object_of_a_kind_that_is_defined_beside_it_needs_a_second_apply() -> None:
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]}
    definition = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    definition |= {"metadata": {"name": "things.example.com"}, "spec": spec}
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "one"}}

    async def story(world: World) -> None:
        await world.clock.sleep(1)

    changes = [Apply(definition), Apply(thing)]
    answer = plan(snapshot_of(story), changes, Options(30))
    assert answer.changes == (
        "apply CustomResourceDefinition things.example.com (client-side)",
        "apply Thing one (client-side; kubectl apply does not know its kind before it is run again)",
    )


def test_images_of_one_workload_are_set_by_one_patch() -> None:
    """As by kubectl set image: there is one rollout."""
    web = deployment("web", 2)
    pod = web["spec"]["template"]["spec"]
    pod["containers"].append({**pod["containers"][0], "name": "d"})
    pod["initContainers"] = [{"name": "i", "image": "v1"}]

    async def story(world: World) -> None:
        await world.create("apps/v1/deployments", web)
        await world.clock.sleep(60)

    target = Named("deploy", "web", NAMESPACE)
    changes = [SetImage(target, "new:1", name) for name in ("c", "d", "i")]
    answer = plan(snapshot_of(story), changes, Options(120))
    actions = sorted(one.action for one in answer.differences if one.about.kind == "ReplicaSet")
    assert actions == ["changed", "created"]
    (changed,) = [one for one in answer.differences if one.about.kind == "Deployment"]
    images = {field.path for field in changed.fields if field.path.endswith(".image")}
    assert images == {
        f"spec.template.spec.{of}.image" for of in ("containers[c]", "containers[d]", "initContainers[i]")
    }
    assert [line.partition(" (")[0] for line in answer.changes] == [
        f"set image deploy/web {name}=new:1" for name in ("c", "d", "i")
    ]


def test_what_the_api_server_warns_of_is_told_with_the_change() -> None:
    """As kubectl prints it: of two variables of one name, the next apply may remove both."""
    doc = {**deployment("web", 1), "apiVersion": "apps/v1", "kind": "Deployment"}
    doc["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "a"}, {"name": "A", "value": "b"}]
    calm = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "calm"}}

    async def story(world: World) -> None:
        await world.clock.sleep(1)

    warned, other = plan(snapshot_of(story), [Apply(doc), Apply(calm)], Options(30)).changes
    assert warned == (
        f"apply Deployment {NAMESPACE}/web (client-side; the API server warns: "
        'spec.template.spec.containers[0].env[1]: hides previous definition of "A", '
        "which may be dropped when using apply)"
    )
    assert other == "apply ConfigMap calm (client-side)"
