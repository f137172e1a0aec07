"""Empty lists and maps in requests."""

import json

import pytest

from kcm_cli.rest.transport import Request
from kcm_cli.sandbox.apiserver.registry.updating import states_empty
from kcm_cli.sandbox.apiserver.types import Tree
from kcm_cli.sandbox.transport import InProcessTransport
from tests.kit.api import Api
from tests.kit.embedded import ADMIN


@pytest.mark.parametrize(
    ("stated", "is_empty"),
    [
        ({"spec": {"a": 2, "none": None, "items": [{"name": "z"}, {}]}}, False),
        ({"spec": {"list": []}}, True),
        ({"spec": {"items": [{}, {"ports": {}}]}}, True),
        ({"spec": {"items": [{"ports": []}]}}, False),
        ({"metadata": {"labels": {}}, "status": {"conditions": []}}, False),
    ],
)
def test_what_a_request_states_and_decoding_drops(stated: Tree, is_empty: bool) -> None:
    doc = {"metadata": {}, "spec": {"a": 1, "items": [{"name": "x"}, {"name": "y"}]}, "status": {}}
    assert states_empty(doc, stated) == is_empty


async def test_an_empty_value_is_no_error_of_its_own(api: Api) -> None:
    namespace = await api.namespace()
    pod = {"spec": {"containers": [{"name": "c", "image": "i"}]}, "metadata": {"name": "p", "labels": {"a": "b"}}}
    sets = {"metadata": {"name": "p"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": pod}}
    for path, doc in (("/api/v1/{}/pods", pod), ("/apis/apps/v1/{}/statefulsets", sets)):
        objects = path.format(f"namespaces/{namespace}")
        spec = (await api.make(objects, doc))["spec"]
        wrong = {"metadata": {"name": "p", "labels": {"!": ""}}, "spec": {**spec, "nodeSelector": {}, "unknown": []}}
        answer = await api.put(f"{objects}/p", wrong)
        assert {cause["field"] for cause in answer.causes} == {"metadata.labels"}


async def test_some_kinds_count_an_empty_list_as_a_change_each_time(api: Api) -> None:
    path = f"/apis/networking.k8s.io/v1/namespaces/{await api.namespace()}/networkpolicies"
    doc: Tree = {"metadata": {"name": "p"}, "spec": {"podSelector": {"matchLabels": {"a": "b"}}}}
    assert (await api.post(path, doc)).doc["metadata"]["generation"] == 1
    assert (await api.put(f"{path}/p", doc)).doc["metadata"]["generation"] == 1
    doc["spec"]["podSelector"]["matchExpressions"] = []
    for generation in (2, 3):
        changed = (await api.put(f"{path}/p", doc)).doc
        assert changed["metadata"]["generation"] == generation
        assert changed["spec"]["podSelector"] == {"matchLabels": {"a": "b"}}


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_who_states_an_empty_list_in_a_list_owns_that(api: Api, method: str) -> None:
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    name = f"empty-{method.lower()}"
    rules = [
        {"verbs": ["get"], "nonResourceURLs": ["/x"]},
        {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]},
    ]
    doc: Tree = {"metadata": {"name": name, "labels": {"a": "b"}}, "rules": rules}
    await api.post(f"{roles}?fieldManager=first", doc)

    async def owners() -> dict[str, list[str]]:
        entries = (await api.get(f"{roles}/{name}")).doc["metadata"]["managedFields"]
        return {entry["manager"]: sorted(entry["fieldsV1"]) for entry in entries}

    media = "application/json" if method == "PUT" else "application/merge-patch+json"
    await api.call(method, f"{roles}/{name}?fieldManager=second", doc, content_type=media)
    assert await owners() == {"first": ["f:metadata", "f:rules"]}
    rules[0]["apiGroups"] = []
    answer = await api.call(method, f"{roles}/{name}?fieldManager=second", doc, content_type=media)
    assert answer.doc["rules"] == [{"verbs": ["get"], "nonResourceURLs": ["/x"]}, rules[1]]
    assert await owners() == {"first": ["f:metadata"], "second": ["f:rules"]}


async def test_an_empty_list_is_no_value(api: Api) -> None:
    path = f"/apis/resource.k8s.io/v1/namespaces/{await api.namespace()}/resourceclaimtemplates"
    await api.make(path, {"metadata": {"name": "t"}, "spec": {"metadata": {"finalizers": []}, "spec": {}}})


async def test_what_ends_upstreams_connection_is_refused(api: Api) -> None:
    version = {"name": "v1", "served": True, "storage": True, "schema": {}}
    spec = {"group": "e.x", "names": {"plural": "as", "kind": "A"}, "scope": "Cluster", "versions": [version]}
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert (await api.post(crds, {"metadata": {"name": "as.e.x"}, "spec": spec})).status == 422
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    job = {"completionMode": "Indexed", "parallelism": 1, "successPolicy": {"rules": [{"succeededIndexes": "0"}]}}
    jobs = f"/apis/batch/v1/namespaces/{await api.namespace()}/jobs"
    assert (await api.post(jobs, {"metadata": {"name": "j"}, "spec": {**job, "template": {"spec": pod}}})).status == 422
    services = f"/api/v1/namespaces/{await api.namespace()}/services"
    made = await api.make(
        services, {"metadata": {"name": "s"}, "spec": {"ipFamilyPolicy": "PreferDualStack", "ports": [{"port": 80}]}}
    )
    assert (await api.put(f"{services}/s", {**made, "spec": {**made["spec"], "clusterIP": "None"}})).status == 422


async def test_warnings_of_a_policy_name_any_field(api: Api) -> None:
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"]}]
    spec = {"matchConstraints": {"resourceRules": rules}, "validations": [{"expression": "true"}]}
    made = await api.make(path, {"metadata": {"name": "p"}, "spec": spec})
    made["status"] = {"typeChecking": {"expressionWarnings": [{"fieldRef": "/abs", "warning": "w"}]}}
    assert (await api.put(f"{path}/p/status", made)).status == 200


async def test_volumes_of_claims_are_numbered_by_name(api: Api) -> None:
    claims = [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}, {"metadata": {}}]
    pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": pod, "volumeClaimTemplates": claims}
    answer = await api.post(
        f"/apis/apps/v1/namespaces/{await api.namespace()}/statefulsets", {"metadata": {"name": "s"}, "spec": spec}
    )
    fields = [cause["field"] for cause in answer.causes]
    assert "spec.template.spec.volumes[0].name" in fields


async def test_a_json_patch_of_null_changes_nothing(api: Api) -> None:
    hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    made = await api.make(hooks, {"metadata": {"name": "nothing"}})
    headers = {"content-type": "application/json-patch+json"}
    transport = InProcessTransport(api.server.api, ADMIN)
    answer = await transport.send(Request("PATCH", f"{hooks}/nothing", (), headers, b"null"))
    assert answer.status == 200
    assert json.loads(answer.body)["metadata"] == made["metadata"]
