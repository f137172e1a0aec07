"""Binding pods to nodes."""

from typing import Any

import pytest

from kcm_cli.api.resource import GVR
from tests.kit.api import Api

MERGE = {"content-type": "application/merge-patch+json"}
PODS = "/api/v1/namespaces/default/pods"


async def new_pod(api: Api, **spec: Any) -> Any:
    body = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}
    return await api.json("POST", PODS, body, status=201)


def binding(**meta: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p", **meta}, "target": {"kind": "Node", "name": "n"}}


@pytest.mark.parametrize(
    ("spec", "code", "warns"),
    [
        ({}, 201, False),
        ({"nodeSelector": {"beta.kubernetes.io/arch": "x"}}, 201, True),
        ({"restartPolicy": "Sometimes"}, 422, False),
    ],
    ids=["valid", "warning", "invalid"],
)
async def test_pods_of_one_template_get_the_same_answers(
    api: Api, spec: dict[str, Any], code: int, warns: bool
) -> None:
    body = {"metadata": {"generateName": "p-"}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}
    answers = [await api.call("POST", PODS, body) for _ in range(3)]
    assert [(each.status, "warning" in each.headers) for each in answers] == [(code, warns)] * 3


@pytest.mark.parametrize(
    ("container", "volumes"),
    [
        ({"volumeMounts": [{"name": "kube-api-access-bbbbb", "mountPath": "/x"}]}, ["kube-api-access-aaaaa"]),
        ({"volumeMounts": [{"name": "kube-api-access-aaaaa", "mountPath": "/x"}]}, ["kube-api-access-aaaaa"] * 2),
        ({"name": ""}, ["kube-api-access-aaaaa"]),
    ],
    ids=["unknown volume", "duplicate volume", "no name"],
)
async def test_a_pod_is_invalid_though_a_similar_one_is_valid(
    api: Api, container: dict[str, Any], volumes: list[str]
) -> None:
    def pod(container: dict[str, Any], volumes: list[str]) -> dict[str, Any]:
        found: dict[str, Any] = {"name": "kube-api-access-ccccc", "image": "i"}
        spec = {"containers": [found | container], "volumes": [{"name": name, "emptyDir": {}} for name in volumes]}
        return {"metadata": {"generateName": "p-"}, "spec": spec}

    mounts = [{"name": volumes[0], "mountPath": "/x"}]
    for valid in (["kube-api-access-aaaaa"], ["kube-api-access-aaaaa", "kube-api-access-bbbbb"]):
        assert (await api.call("POST", PODS, pod({"volumeMounts": mounts}, valid))).status == 201
        assert (await api.call("POST", PODS, pod({}, valid))).status == 201
    assert (await api.call("POST", PODS, pod(container, volumes))).status == 422


async def test_a_bound_pod_is_on_its_node(api: Api) -> None:
    pod = await new_pod(api)
    meta = {"uid": pod["metadata"]["uid"], "resourceVersion": pod["metadata"]["resourceVersion"]}
    await api.json("POST", f"{PODS}/p/binding", binding(**meta, annotations={"a": "b"}), status=201)
    found = await api.json("GET", f"{PODS}/p")
    assert found["spec"]["nodeName"] == "n"
    assert found["metadata"]["annotations"] == {"a": "b"}
    assert [c["status"] for c in found["status"]["conditions"] if c["type"] == "PodScheduled"] == ["True"]
    again = await api.json("POST", f"{PODS}/p/binding", binding(), status=409)
    assert 'already assigned to node "n"' in again["message"]


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        ({"uid": "other"}, "UID in precondition: other, UID in object meta: "),
        ({"resourceVersion": "1"}, "ResourceVersion in precondition: 1, ResourceVersion in object meta: "),
    ],
    ids=["uid", "version"],
)
async def test_a_binding_of_another_pod_is_refused(api: Api, meta: dict[str, str], message: str) -> None:
    await new_pod(api)
    refused = await api.json("POST", f"{PODS}/p/binding", binding(**meta), status=409)
    assert message in refused["message"]
    assert "nodeName" not in (await api.json("GET", f"{PODS}/p"))["spec"]


async def test_a_binding_in_the_collection_has_no_uid(api: Api) -> None:
    await new_pod(api)
    await api.json("POST", "/api/v1/namespaces/default/bindings", binding(uid="other"), status=201)
    assert (await api.json("GET", f"{PODS}/p"))["spec"]["nodeName"] == "n"


async def test_a_pod_is_not_bound_to_what_can_be_no_node(api: Api) -> None:
    await new_pod(api)
    wrong = {**binding(), "target": {"kind": "Node", "name": "Not_a_node"}}
    refused = await api.json("POST", f"{PODS}/p/binding", wrong, status=500)
    assert refused["message"].startswith('target.name: Invalid value: "Not_a_node": a lowercase RFC 1123 subdomain')
    assert "nodeName" not in (await api.json("GET", f"{PODS}/p"))["spec"]


async def test_a_gated_pod_is_not_bound(api: Api) -> None:
    await new_pod(api, schedulingGates=[{"name": "example.com/wait"}])
    refused = await api.json("POST", f"{PODS}/p/binding", binding(), status=409)
    assert "non-empty .spec.schedulingGates" in refused["message"]


@pytest.mark.parametrize(
    ("version", "status"),
    [("policy/v1", 201), ("policy/v1beta1", 201), ("policy/v1beta2", 400), ("apps/v1beta1", 400)],
)
async def test_evictions_of_the_old_version_are_accepted(api: Api, version: str, status: int) -> None:
    await new_pod(api)
    eviction = {"apiVersion": version, "kind": "Eviction", "metadata": {"name": "p"}}
    await api.json("POST", f"{PODS}/p/eviction", eviction, status=status)


async def test_a_binding_does_not_change_the_previous_version(api: Api) -> None:
    await new_pod(api)
    store = api.server.store
    before = store.get(GVR("", "v1", "pods"), "default", "p")
    assert before is not None
    shown = before.copy()
    assert before.doc == shown
    await api.json("POST", f"{PODS}/p/binding", binding(labels={"a": "b"}), status=201)
    await api.json("PATCH", f"{PODS}/p", {"metadata": {"labels": {"a": "c"}}}, headers=MERGE)
    assert before.doc == shown


@pytest.mark.parametrize("part", ["ephemeralcontainers", "resize"])
async def test_unchanged_fields_in_writes_of_subresources_are_owned(api: Api, part: str) -> None:
    await new_pod(api)
    body = {"metadata": {"labels": {"a": "b"}}, "spec": {"nodeName": "n"}}
    pod = await api.json("PATCH", f"{PODS}/p/{part}", body, headers=MERGE)
    assert "labels" not in pod["metadata"] and "nodeName" not in pod["spec"]
    owned = next(one["fieldsV1"] for one in pod["metadata"]["managedFields"] if one.get("subresource") == part)
    assert owned == {"f:metadata": {"f:labels": {".": {}, "f:a": {}}}, "f:spec": {"f:nodeName": {}}}
