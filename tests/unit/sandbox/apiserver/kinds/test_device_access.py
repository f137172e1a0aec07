"""Permissions for admin access to devices, for allocating devices, and for reporting their status."""

from typing import Any

import pytest

from kcm_cli.sandbox.apiserver.types import User
from tests.kit.api import Api

RBAC = "/apis/rbac.authorization.k8s.io/v1"
DEVICES = "/apis/resource.k8s.io/v1/namespaces/default"
NEEDED = (
    "admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace"
)
ADMIN = {"name": "r", "exactly": {"deviceClassName": "c", "adminAccess": True}}
PLAIN = {"name": "r", "exactly": {"deviceClassName": "c"}}
RESULT = {"request": "r", "driver": "d.x", "pool": "p", "device": "one"}
ON_NODE = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}
ALLOCATION = {"devices": {"results": [RESULT]}, "nodeSelector": ON_NODE}
STATE = {"driver": "d.x", "pool": "p", "device": "one", "data": {"a": 1}}
JOE = User("joe")
DRIVER = User("system:serviceaccount:default:driver", extra={"authentication.kubernetes.io/node-name": ("n1",)})


def claim(request: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}}


async def label(api: Api) -> None:
    await api.json(
        "PATCH",
        "/api/v1/namespaces/default",
        {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}},
        headers={"content-type": "application/merge-patch+json"},
    )


async def let(api: Api, user: User, *rules: tuple[str, list[str]]) -> None:
    """Grant a user these resources with these verbs, besides reading and writing the status of claims."""
    all_rules = [("resourceclaims", ["get"]), ("resourceclaims/status", ["get", "update", "patch"]), *rules]
    role = {
        "metadata": {"name": "r"},
        "rules": [{"apiGroups": ["resource.k8s.io"], "resources": [what], "verbs": verbs} for what, verbs in all_rules],
    }
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user.name}]
    await api.json("POST", f"{RBAC}/clusterroles", role, status=201)
    await api.json(
        "POST",
        f"{RBAC}/clusterrolebindings",
        {"metadata": {"name": "b"}, "roleRef": ref, "subjects": subjects},
        status=201,
    )


async def put_status(api: Api, status: dict[str, Any], code: int = 200) -> str:
    """Change the status of the claim; returns the message of the error."""
    doc = await api.json("GET", f"{DEVICES}/resourceclaims/c")
    doc["status"] = status
    answer = await api.json("PUT", f"{DEVICES}/resourceclaims/c/status", doc, status=code)
    return str(answer.get("message", ""))


async def test_an_administrators_namespace_has_a_label(api: Api) -> None:
    found = await api.json("POST", f"{DEVICES}/resourceclaims", claim(ADMIN), status=422)
    assert found["message"] == (
        f'ResourceClaim.resource.k8s.io "c" is invalid: spec.devices.requests[0].adminAccess: Forbidden: {NEEDED}'
    )
    template = {"metadata": {"name": "t"}, "spec": {"spec": claim(ADMIN)["spec"]}}
    found = await api.json("POST", f"{DEVICES}/resourceclaimtemplates", template, status=422)
    assert f"spec.devices.requests[0].adminAccess: Forbidden: {NEEDED}" in found["message"]
    await label(api)
    await api.json("POST", f"{DEVICES}/resourceclaims", claim(ADMIN), status=201)
    await api.json("POST", f"{DEVICES}/resourceclaimtemplates", template, status=201)


async def test_devices_for_an_administrator(api: Api) -> None:
    await api.json("POST", f"{DEVICES}/resourceclaims", claim(PLAIN), status=201)
    status = {"allocation": {"devices": {"results": [RESULT | {"adminAccess": True}]}}}
    text = f"status.allocation.devices.results[0].adminAccess: Forbidden: {NEEDED}"
    assert text in await put_status(api, status, 422)
    await label(api)
    await put_status(api, status)


@pytest.mark.parametrize("bound", [True, False])
async def test_allocating_devices_requires_a_permission(api: Api, bound: bool) -> None:
    await api.json("POST", f"{DEVICES}/resourceclaims", claim(PLAIN), status=201)
    await let(api, JOE, *([("resourceclaims/binding", ["update"])] if bound else []))
    text = await put_status(Api(api.server, JOE), {"allocation": ALLOCATION}, 200 if bound else 422)
    expected = (
        'ResourceClaim.resource.k8s.io "c" is invalid: status.allocation: Forbidden: changing status.allocation or '
        'status.reservedFor requires resource="resourceclaims/binding", verb="update" permission: '
        'resourceclaims.resource.k8s.io is forbidden: User "joe" cannot update resource "resourceclaims/binding" '
        'in API group "resource.k8s.io" at the cluster scope'
    )
    assert text == ("" if bound else expected)


@pytest.mark.parametrize(
    ("user", "verb", "refused"),
    [
        pytest.param(JOE, "arbitrary-node:update", "", id="any driver"),
        pytest.param(JOE, "associated-node:update", "[arbitrary-node:update]", id="not a driver on the node"),
        pytest.param(DRIVER, "associated-node:update", "", id="the driver on the node"),
        pytest.param(DRIVER, "other", "[associated-node:update arbitrary-node:update]", id="neither"),
    ],
)
async def test_reporting_the_status_of_devices(api: Api, user: User, verb: str, refused: str) -> None:
    await api.json("POST", f"{DEVICES}/resourceclaims", claim(PLAIN), status=201)
    await put_status(api, {"allocation": ALLOCATION})
    await let(api, user, ("resourceclaims/driver", [verb]))
    status = {"allocation": ALLOCATION, "devices": [STATE]}
    text = await put_status(Api(api.server, user), status, 422 if refused else 200)
    if refused:
        what = f'changing status.devices requires resource="resourceclaims/driver", verb="{refused}" permission'
        assert f"status.devices: Forbidden: {what}: " in text
        assert 'resourceclaims.resource.k8s.io "d.x" is forbidden' in text
