"""Reading a cluster: requests, errors, inconsistent lists."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import yaml

from kcm_cli.api.resource import GVR
from kcm_cli.plan import Apply, Delete, Options, PlanError, Scale, Snapshot, Target, plan
from kcm_cli.plan.collect import check_include, collect
from kcm_cli.plan.kinds import KINDS
from kcm_cli.plan.snapshot import is_time_of_cluster
from kcm_cli.planning.actions import MERGE
from kcm_cli.rest.client import Client
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.rest.transport import Request, Response, Stream, Transport
from kcm_cli.sandbox.apiserver.admission.dynamic import mutating, validating
from kcm_cli.sandbox.apiserver.types import User
from kcm_cli.sandbox.views import NODES
from tests.kit.places import ROOT
from tests.kit.simulation import NAMESPACE, World
from tests.kit.workload import deployment
from tests.unit.plan.clusters import living, settle_workloads, snapshot_of

Tree = dict[str, Any]
Answerer = Callable[[Request], Response | None]


class Tapped:
    """Notes requests, and answers some of them itself."""

    def __init__(self, transport: Transport, answer: Answerer = lambda request: None) -> None:
        self._transport = transport
        self._answer = answer
        self.asked: list[Request] = []

    async def send(self, request: Request) -> Response:
        self.asked.append(request)
        return self._answer(request) or await self._transport.send(request)

    def stream(self, request: Request) -> Stream:
        raise AssertionError(f"nothing is watched: {request}")

    async def close(self) -> None: ...


def read(
    answer: Answerer = lambda request: None,
    *,
    namespace: str = "",
    include: tuple[str, ...] = (),
    prepare: Callable[[World], Any] = settle_workloads,
    user: User | None = None,
) -> tuple[Snapshot, list[Request]]:
    """A snapshot of a cluster, and the requests that it took."""
    runner, world = living(prepare)

    async def whole() -> tuple[Snapshot, list[Request]]:
        transport = world.server.transport(user) if user is not None else world.server.transport()
        tapped = Tapped(transport, answer)
        reader = Client(tapped, limiter=Unlimited(), user_agent="plan", clock=world.clock)  # type: ignore[arg-type]
        return await collect(reader, world.clock, include=include, namespace=namespace), tapped.asked

    return runner.run(whole())


def refusing(*plurals: str, status: int = 403, namespaced: bool = False) -> Answerer:
    """Refuses lists of these in all namespaces (and, if so said, in any)."""

    def answer(request: Request) -> Response | None:
        plural = request.path.rpartition("/")[2]
        if plural not in plurals or ("/namespaces/" in request.path and not namespaced):
            return None
        reason = {403: "Forbidden", 410: "Expired", 404: "NotFound"}[status]
        text = f'{plural} is forbidden: User "x" cannot list it'
        doc = {"kind": "Status", "status": "Failure", "reason": reason, "code": status, "message": text}
        return Response(status, {"content-type": "application/json"}, json.dumps(doc).encode())

    return answer


async def nothing(world: World) -> None:
    await world.clock.sleep(30)


def asked_kinds(requests: list[Request]) -> set[tuple[str, str]]:
    found = set()
    for request in requests:
        parts = request.path.split("/")
        if len(parts) > 3:
            found.add((parts[2] if parts[1] == "apis" else "", parts[-1]))
    return found


def roles() -> dict[str, set[tuple[str, str]]]:
    """The lists that the ClusterRoles in configs allow, by role."""
    found: dict[str, set[tuple[str, str]]] = {}
    for role in yaml.safe_load_all((ROOT / "configs/kubernetes/plan-rbac.yaml").read_text()):
        assert all(rule["verbs"] == ["list"] for rule in role["rules"])
        lists = {(group, one) for rule in role["rules"] for group in rule["apiGroups"] for one in rule["resources"]}
        found[role["metadata"]["name"]] = lists
    return found


def test_the_cluster_role_allows_exactly_the_requests() -> None:
    _, requests = read(prepare=nothing)
    assert asked_kinds(requests) == roles()["kcm-plan"]
    _, requests = read(prepare=nothing, include=("configmaps", "events", "custom"))
    assert asked_kinds(requests) == roles()["kcm-plan"] | roles()["kcm-plan-include"]


def test_the_cluster_role_is_sufficient_and_minimal() -> None:
    user = User("alice", groups=("system:authenticated",))

    async def bound(world: World) -> None:
        documents = list(yaml.safe_load_all((ROOT / "configs/kubernetes/plan-rbac.yaml").read_text()))
        subject = {"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}
        ref = {"kind": "ClusterRole", "name": "kcm-plan", "apiGroup": "rbac.authorization.k8s.io"}
        binding = {"metadata": {"name": "kcm-plan"}, "roleRef": ref, "subjects": [subject]}
        version = {"apiVersion": "rbac.authorization.k8s.io/v1"}
        whole = {**version, "kind": "ClusterRoleBinding", **binding}
        for plural, doc in (("clusterroles", documents[0]), ("clusterrolebindings", whole)):
            path = f"/apis/rbac.authorization.k8s.io/v1/{plural}"
            body = json.dumps(doc).encode()
            await world.client.call(Request("POST", path, (), {"content-type": "application/json"}, body))

    snapshot, _ = read(prepare=bound, user=user)
    assert {gap.resource for gap in snapshot.gaps} == {"secrets", "configmaps", "events", "custom"}
    assert all(any(gvr.plural == kind.gvr.plural for gvr in snapshot.collections) for kind in KINDS)


def test_what_admits_writes_is_read() -> None:
    admit = (mutating.POLICIES, mutating.BINDINGS, validating.POLICIES, validating.BINDINGS)
    assert {*admit} <= {kind.gvr for kind in KINDS}


def test_all_lists_have_one_version_and_are_paginated() -> None:
    snapshot, requests = read()
    lists = [dict(request.query) for request in requests if len(request.path.split("/")) > 3]
    assert all(query["limit"] == "500" for query in lists)
    exact = [query for query in lists if query.get("resourceVersionMatch") == "Exact"]
    assert {query["resourceVersion"] for query in exact} == {snapshot.resource_version}
    assert len(exact) == len(lists) - 1
    assert snapshot.torn == ()


def test_a_snapshot_without_a_common_version_is_torn() -> None:
    def gone(request: Request) -> Response | None:
        old = dict(request.query).get("resourceVersionMatch") == "Exact"
        return refusing("pods", status=410)(request) if old else None

    snapshot, _ = read(gone)
    assert snapshot.torn == ("pods",)
    answer = plan(snapshot, (), Options(horizon_s=10))
    assert any(line.startswith("the cut is torn") and line.endswith(": pods") for line in answer.not_modelled)


def test_a_refused_kind_is_a_named_gap_and_disables_its_controllers() -> None:
    snapshot, _ = read(refusing("poddisruptionbudgets", "nodes"))
    gaps = {gap.resource: gap.reason for gap in snapshot.gaps}
    assert "is forbidden" in gaps["nodes"] and "is forbidden" in gaps["poddisruptionbudgets.policy"]
    answer = plan(snapshot, (), Options(horizon_s=120))
    assert answer.audit == ()  # no pod is taken for one of a node that is gone
    assert any("disruption-controller" in line for line in answer.not_modelled if line.startswith("not run"))
    assert any(line.startswith("nodes: ") for line in answer.not_modelled)


def test_a_node_that_was_not_read_has_the_labels_that_its_pods_select() -> None:
    async def story(world: World) -> None:
        await world.clock.sleep(5)
        for name in ("node-1", "node-2"):
            await world.client.patch(NODES, "", name, {"metadata": {"labels": {"disk": "ssd"}}}, content_type=MERGE)
        web = deployment("web", 2)
        apart = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
        apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
        web["spec"]["template"]["spec"] |= {"nodeSelector": {"disk": "ssd"}, "affinity": apart}
        await world.create("apps/v1/deployments", web)
        await world.clock.sleep(60)

    snapshot, _ = read(refusing("nodes"), prepare=story)
    deleted = next(item.name for item in snapshot.items(GVR("", "v1", "pods")) if item.name.startswith("web-"))
    answer = plan(snapshot, (Delete(Target("pod", deleted, NAMESPACE)),), Options(horizon_s=60))
    assert answer.problems == () and answer.totals.pods_created == 1
    answer = plan(snapshot, (Scale(Target("deploy", "web", NAMESPACE), 3),), Options(horizon_s=60))
    assert [one.kind for one in answer.problems] == ["pending", "stuck"]  # there are two nodes, as far as is known


async def with_what_pods_refer_to(world: World) -> None:
    """A Deployment whose pods have a claim, a priority and a runtime."""
    size, modes = {"storage": "1Gi"}, ["ReadWriteMany"]
    spec: Tree = {"capacity": size, "accessModes": modes, "hostPath": {"path": "/d"}}
    for path, doc in (
        ("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 1000}),
        ("/apis/node.k8s.io/v1/runtimeclasses", {"metadata": {"name": "fast"}, "handler": "fast"}),
        ("/api/v1/persistentvolumes", {"metadata": {"name": "disk"}, "spec": spec}),
    ):
        headers = {"content-type": "application/json"}
        await world.client.call(Request("POST", path, (), headers, json.dumps(doc).encode()))
    spec = {"storageClassName": "", "accessModes": modes, "resources": {"requests": size}, "volumeName": "disk"}
    await world.create("v1/persistentvolumeclaims", {"metadata": {"name": "d", "namespace": NAMESPACE}, "spec": spec})
    web = deployment("web", 2)
    web["spec"]["template"]["spec"] |= {
        "priorityClassName": "high",
        "runtimeClassName": "fast",
        "volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "d"}}],
    }
    await world.create("apps/v1/deployments", web)
    await world.clock.sleep(60)


def test_what_pods_refer_to_and_may_not_be_read_refuses_none_of_them() -> None:
    refused = refusing("persistentvolumes", "priorityclasses", "runtimeclasses", "serviceaccounts")
    snapshot, _ = read(refused, prepare=with_what_pods_refer_to)
    answer = plan(snapshot, (Scale(Target("deploy", "web", NAMESPACE), 3),), Options(horizon_s=60))
    assert answer.problems == () and answer.totals.pods_created == 1


async def with_a_policy(world: World, kind: str, **body: object) -> None:
    """A policy of pods with a ConfigMap as its parameter."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    param = {"name": "p", "namespace": NAMESPACE, "parameterNotFoundAction": "Deny"}
    await world.create("v1/configmaps", {"metadata": {"name": "p", "namespace": NAMESPACE}, "data": {"a": "b"}})
    path, headers = "/apis/admissionregistration.k8s.io/v1", {"content-type": "application/json"}
    constraints = {
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConstraints": {"resourceRules": [rule]},
    }
    bound = {"policyName": "x", "paramRef": param} | ({"validationActions": ["Deny"]} if kind == "validating" else {})
    for plural, spec in (("policies", {**constraints, **body}), ("policybindings", bound)):
        doc = json.dumps({"metadata": {"name": "x"}, "spec": spec}).encode()
        await world.client.call(Request("POST", f"{path}/{kind}admission{plural}", (), headers, doc))
    await world.create("apps/v1/deployments", deployment("web", 2))
    await world.clock.sleep(60)


LABELS = {"expression": "Object{metadata: Object.metadata{labels: {'a': params.data.a}}}"}
MUTATIONS = [{"patchType": "ApplyConfiguration", "applyConfiguration": LABELS}]
POLICIES: list[tuple[str, Tree]] = [
    ("validating", {"validations": [{"expression": "params.data.a == 'b'"}]}),
    ("mutating", {"reinvocationPolicy": "Never", "mutations": MUTATIONS}),
]


@pytest.mark.parametrize(("kind", "body"), POLICIES, ids=["validating", "mutating"])
@pytest.mark.parametrize("include", [[], ["configmaps"]], ids=["unread", "read"])
def test_a_policy_whose_parameters_were_not_read_refuses_nothing(kind: str, body: Tree, include: list[str]) -> None:
    snapshot = snapshot_of(partial(with_a_policy, kind=kind, **body), include=include)
    answer = plan(snapshot, (Scale(Target("deploy", "web", NAMESPACE), 3),), Options(horizon_s=60))
    assert answer.problems == () and answer.totals.pods_created == 1
    assumed = "policies whose parameters were not read make no difference: x"
    assert (assumed in answer.assumed) == (not include)
    bindings = GVR("admissionregistration.k8s.io", "v1", f"{kind}admissionpolicybindings")
    again = plan(snapshot, [Apply(doc) for doc in snapshot.docs(bindings)], Options(horizon_s=60))
    assert [one.action for one in again.differences] == ["changed"], "not created"


def test_one_namespace_is_read_if_only_that_is_allowed() -> None:
    snapshot, _ = read(refusing("pods", "deployments"), namespace=NAMESPACE)
    partial = {gap.resource for gap in snapshot.gaps if gap.partial}
    assert partial == {"pods", "deployments.apps"}
    assert snapshot.items(GVR("", "v1", "pods"))
    spaces = {
        item.namespace for gvr, one in snapshot.collections.items() if gvr.plural != "leases" for item in one.items
    }
    assert spaces == {NAMESPACE, ""}
    assert plan(snapshot, (), Options(horizon_s=60)).audit == ()


async def with_volumes_of_two(world: World) -> None:
    """A Deployment with a volume in each of two namespaces."""
    size, modes, headers = {"storage": "1Gi"}, ["ReadWriteOnce"], {"content-type": "application/json"}

    async def make(path: str, doc: Tree) -> None:
        await world.client.call(Request("POST", path, (), headers, json.dumps(doc).encode()))

    await make("/api/v1/namespaces", {"metadata": {"name": "other"}})
    await world.clock.sleep(10)
    for space, name in ((NAMESPACE, "here"), ("other", "there")):
        driver = {"driver": "x.csi", "volumeHandle": name}
        spec: Tree = {"capacity": size, "accessModes": modes, "persistentVolumeReclaimPolicy": "Delete", "csi": driver}
        await make("/api/v1/persistentvolumes", {"metadata": {"name": name}, "spec": spec})
        spec = {"storageClassName": "", "accessModes": modes, "resources": {"requests": size}, "volumeName": name}
        await make(f"/api/v1/namespaces/{space}/persistentvolumeclaims", {"metadata": {"name": "d"}, "spec": spec})
        web = deployment("web", 1)
        web["metadata"]["namespace"] = space
        web["spec"]["template"]["spec"]["volumes"] = [{"name": "d", "persistentVolumeClaim": {"claimName": "d"}}]
        await make(f"/apis/apps/v1/namespaces/{space}/deployments", web)
    await world.clock.sleep(120)


def test_volumes_of_other_namespaces_lose_no_claims_that_could_not_be_read() -> None:
    refused = refusing("pods", "persistentvolumeclaims")
    snapshot, _ = read(refused, namespace=NAMESPACE, prepare=with_volumes_of_two)
    kept = {gvr.plural: one.items for gvr, one in snapshot.collections.items()}
    assert [item.name for item in kept["persistentvolumes"]] == ["here"] and len(kept["volumeattachments"]) == 1
    written = {str(one.about) for one in plan(snapshot, (), Options(horizon_s=120)).audit if one.about.kind != "Node"}
    assert written == set()


def test_older_servers_have_older_versions() -> None:
    def old(request: Request) -> Response | None:
        if not request.path.startswith("/apis/networking.k8s.io/"):
            return None
        version = request.path.split("/")[3]
        plural = request.path.rpartition("/")[2]
        if plural != "servicecidrs":
            return None
        if version == "v1":
            return refusing("servicecidrs", status=404)(request)
        item = {"metadata": {"name": "kubernetes", "uid": "u"}, "spec": {"cidrs": ["10.0.0.0/24"]}}
        return Response(200, {}, json.dumps({"metadata": {}, "items": [item]}).encode())

    snapshot, _ = read(old)
    (item,) = snapshot.items(GVR("networking.k8s.io", "v1beta1", "servicecidrs"))
    assert item.doc["apiVersion"] == "networking.k8s.io/v1beta1"
    audit = plan(snapshot, (), Options(horizon_s=10)).audit
    assert {one.controller for one in audit} == {"service-cidrs-controller"}  # this one lacks its status


def test_odd_objects_are_loaded_unchanged() -> None:
    odd: list[Tree] = [
        {"metadata": None},
        {"metadata": {"name": ""}},
        {"metadata": {"name": "null-spec", "namespace": NAMESPACE, "uid": "1"}, "spec": None, "status": None},
        {"metadata": {"name": "wrong", "namespace": NAMESPACE, "uid": "2"}, "spec": {"containers": 7}},
        {"metadata": {"name": "text", "namespace": NAMESPACE, "uid": "3", "labels": ["x"]}, "spec": "x"},
        {"metadata": {"name": "nulls", "namespace": NAMESPACE, "ownerReferences": None, "labels": None, "uid": "4"}},
        {"metadata": {"name": "UPPER_case", "namespace": NAMESPACE, "uid": "5"}, "spec": {"containers": []}},
        {"metadata": {"name": "lists", "namespace": NAMESPACE, "uid": "6"}, "status": {"used": [1], "hard": None}},
    ]
    many = ("pods", "deployments", "replicasets", "jobs", "nodes", "persistentvolumeclaims", "resourcequotas")

    def with_odd(request: Request) -> Response | None:
        plural = request.path.rpartition("/")[2]
        if plural not in (*many, "horizontalpodautoscalers"):
            return None
        return Response(200, {}, json.dumps({"metadata": {"resourceVersion": "9"}, "items": odd}).encode())

    snapshot, _ = read(with_odd)
    assert snapshot.skipped
    answer = plan(snapshot, (), Options(horizon_s=60))
    assert any(line.startswith("objects that cannot be read") for line in answer.not_modelled)


@pytest.mark.parametrize("body", [b"hello", b"[]", b'{"items": 7}', b'{"items": [1, null, "x"]}'])
def test_a_response_that_is_not_a_list_is_a_gap(body: bytes) -> None:
    def broken(request: Request) -> Response | None:
        return Response(200, {}, body) if request.path.endswith("/replicasets") else None

    snapshot, _ = read(broken, prepare=nothing)
    gaps = {gap.resource for gap in snapshot.gaps}
    assert "replicasets.apps" in gaps or snapshot.skipped == ("replicasets.apps",) * 3


def test_a_list_that_goes_round_in_circles_is_a_gap() -> None:
    def circling(request: Request) -> Response | None:
        page = {"metadata": {"resourceVersion": "9", "continue": "again"}, "items": []}
        return Response(200, {}, json.dumps(page).encode()) if request.path.endswith("/replicasets") else None

    snapshot, _ = read(circling, prepare=nothing)
    (gap,) = (gap for gap in snapshot.gaps if gap.resource == "replicasets.apps")
    assert "round in circles" in gap.reason


def test_a_list_whose_token_expires_is_read_in_one_request() -> None:
    whole: list[Tree] = [{"metadata": {"name": name, "namespace": NAMESPACE, "uid": name}} for name in "ab"]
    whole.append({"metadata": None})

    def expiring(request: Request) -> Response | None:
        query = dict(request.query)
        if not request.path.endswith("/replicasets"):
            return None
        if "continue" in query:
            return refusing("replicasets", status=410)(request)
        page: Tree = {"metadata": {"resourceVersion": "9"}, "items": whole}
        if "limit" in query:
            page = {"metadata": {"resourceVersion": "9", "continue": "t"}, "items": whole[1:]}
        return Response(200, {}, json.dumps(page).encode())

    snapshot, _ = read(expiring, prepare=nothing)
    assert [item.name for item in snapshot.items(GVR("apps", "v1", "replicasets"))] == ["a", "b"]
    assert (snapshot.skipped, snapshot.torn) == (("replicasets.apps",), ("replicasets.apps",))
    assert "replicasets.apps" not in snapshot.missing


def test_the_version_of_a_list_whose_token_expired_is_that_of_its_second_reading() -> None:
    def expiring(request: Request) -> Response | None:
        query = dict(request.query)
        if not request.path.endswith("/namespaces") or "limit" not in query:
            return None
        if "continue" in query:
            return refusing("namespaces", status=410)(request)
        page: Tree = {"metadata": {"resourceVersion": "1", "continue": "t"}, "items": []}
        return Response(200, {}, json.dumps(page).encode())

    snapshot, _ = read(expiring, prepare=nothing)
    assert (snapshot.resource_version != "1", snapshot.torn) == (True, ())


@pytest.mark.parametrize("date", ["Fri, 31 Dec 9999 23:59:59 -1200", "Thu, 01 Jan 1970 00:00:00 GMT", "yesterday"])
def test_a_date_that_no_cluster_has_is_no_time(date: str) -> None:
    def dated(request: Request) -> Response | None:
        return Response(200, {"date": date}, b"{}") if request.path == "/version" else None

    snapshot, _ = read(dated, prepare=nothing)
    assert is_time_of_cluster(snapshot.taken_at)


def test_a_server_that_refuses_everything_is_one_error_line() -> None:
    def closed(request: Request) -> Response | None:
        doc = {"kind": "Status", "reason": "Unauthorized", "code": 401, "message": "Unauthorized", "status": "Failure"}
        return Response(401, {"content-type": "application/json"}, json.dumps(doc).encode())

    with pytest.raises((PlanError, ExceptionGroup)) as raised:
        read(closed, prepare=nothing)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("namespace", "hint"), [("", " (-n NAMESPACE reads one namespace)"), (NAMESPACE, "")])
def test_who_may_list_nothing_is_told_of_namespaces(namespace: str, hint: str) -> None:
    def closed(request: Request) -> Response | None:
        return (
            refusing(request.path.rpartition("/")[2], namespaced=True)(request) if request.path != "/version" else None
        )

    with pytest.raises(PlanError) as raised:
        read(closed, prepare=nothing, namespace=namespace)
    assert str(raised.value) == f'namespaces is forbidden: User "x" cannot list it{hint}'


def test_secrets_are_never_included() -> None:
    assert check_include(("configmaps", "events", "custom")) == []
    assert check_include(("secrets",)) == ["--include: Secrets are never read"]
    (problem,) = check_include(("pods",))
    assert '"pods" is not one of' in problem


def test_usage_of_quotas_is_collected() -> None:
    async def counted(world: World) -> None:
        hard = {"hard": {"pods": "9", "configmaps": "9", "count/secrets": "9"}}
        metadata = {"name": "q", "namespace": NAMESPACE}
        await world.create(
            "v1/resourcequotas", {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": hard}
        )
        await world.create("apps/v1/deployments", deployment("web", 2))
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": NAMESPACE}}
        await world.create("v1/secrets", secret)
        await world.clock.sleep(60)

    snapshot, _ = read(prepare=counted)
    assert plan(snapshot, (), Options(horizon_s=400)).audit == ()


async def with_custom(world: World) -> None:
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": spec,
    }
    headers = {"content-type": "application/json"}
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await world.client.call(Request("POST", path, (), headers, json.dumps(definition).encode()))
    await world.clock.sleep(10)
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"n": 1}}
    path = f"/apis/example.com/v1/namespaces/{NAMESPACE}/widgets"
    await world.client.call(Request("POST", path, (), headers, json.dumps(widget).encode()))
    doc = deployment("owned", 1)
    owner = await world.client.call(Request("GET", f"{path}/w"))
    uid = json.loads(owner)["metadata"]["uid"]
    doc["metadata"]["ownerReferences"] = [{"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": uid}]
    await world.create("apps/v1/deployments", doc)
    await world.clock.sleep(60)


@pytest.mark.parametrize("include", [(), ("custom",)])
def test_dependents_of_custom_resources_are_kept(include: tuple[str, ...]) -> None:
    snapshot, _ = read(prepare=with_custom, include=include)
    there = any(gvr.plural == "widgets" for gvr in snapshot.collections)
    assert there is bool(include)
    assert plan(snapshot, (), Options(horizon_s=120)).audit == ()


def test_dependents_of_refused_custom_resources_are_kept() -> None:
    snapshot, _ = read(refusing("widgets"), prepare=with_custom, include=("custom",))
    assert "widgets.example.com" in snapshot.missing
    assert plan(snapshot, (), Options(horizon_s=120)).audit == ()
