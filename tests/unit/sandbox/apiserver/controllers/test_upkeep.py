"""The server's own objects return after clients have deleted or changed them."""

import asyncio
from typing import Any

import pytest

from kcm_cli.sandbox.apiserver.security.bootstrap import bootstrap_objects

FLOWS = "/apis/flowcontrol.apiserver.k8s.io/v1"
MERGE = {"headers": {"content-type": "application/merge-patch+json"}}
NODE_LEASES = "/api/v1/namespaces/kube-node-lease"
IN_DEFAULT = "/api/v1/namespaces/default"


async def begin(api: Any) -> None:
    """As a sandbox does."""
    await api.server.api.bootstrap(bootstrap_objects(client_ca="ca", address="192.0.2.1", today="2030-01-01"))


@pytest.mark.parametrize(
    ("path", "within_s"),
    [
        (f"{IN_DEFAULT}/services/kubernetes", 10),
        (f"{FLOWS}/flowschemas/system-nodes", 60),
        (f"{FLOWS}/flowschemas/exempt", 60),
        (f"{FLOWS}/prioritylevelconfigurations/global-default", 60),
        (f"{FLOWS}/prioritylevelconfigurations/catch-all", 60),
        ("/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication", 0),
    ],
)
async def test_a_deleted_object_returns(api: Any, path: str, within_s: float) -> None:
    await begin(api)
    await asyncio.sleep(1)
    before = await api.json("GET", path)
    for _ in range(2):
        await api.json("DELETE", path)
        if within_s:
            assert (await api.call("GET", path)).status == 404
        await asyncio.sleep(within_s + 0.1)
        found = await api.json("GET", path)
        assert found["metadata"]["uid"] != before["metadata"]["uid"]
        assert found.get("data") == before.get("data")
        assert found.get("spec") == before.get("spec")


async def test_deleted_and_changed_endpoints_return(api: Any) -> None:
    await begin(api)
    slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"
    for path, field in ((f"{IN_DEFAULT}/endpoints/kubernetes", "subsets"), (slices, "endpoints")):
        before = await api.json("GET", path)
        await api.json("PATCH", path, {field: []}, **MERGE)
        await asyncio.sleep(10.1)
        assert (await api.json("GET", path))[field] == before[field]
        await api.json("DELETE", path)
        await asyncio.sleep(10.1)
        assert (await api.json("GET", path))[field] == before[field]


async def test_a_namespace_returns_when_it_is_gone(api: Any) -> None:
    await begin(api)
    await api.json("DELETE", NODE_LEASES)
    await asyncio.sleep(120)
    doc = await api.json("GET", NODE_LEASES)
    assert doc["status"]["phase"] == "Terminating"
    await api.json("PUT", f"{NODE_LEASES}/finalize", {**doc, "spec": {"finalizers": []}})
    assert (await api.call("GET", NODE_LEASES)).status == 404
    await asyncio.sleep(60.1)
    assert (await api.json("GET", NODE_LEASES))["status"]["phase"] == "Active"


@pytest.mark.parametrize(
    ("path", "annotation", "kept"),
    [
        (f"{FLOWS}/flowschemas/system-nodes", "true", False),
        (f"{FLOWS}/flowschemas/system-nodes", "false", True),
        (f"{FLOWS}/flowschemas/system-nodes", None, True),
        (f"{FLOWS}/flowschemas/system-nodes", "perhaps", True),
    ],
)
async def test_a_changed_schema(api: Any, path: str, annotation: str | None, kept: bool) -> None:
    await begin(api)
    before = await api.json("GET", path)
    annotations = {"apf.kubernetes.io/autoupdate-spec": annotation}
    changed = {"metadata": {"annotations": annotations}, "spec": {"matchingPrecedence": 501}}
    await api.json("PATCH", path, changed, **MERGE)
    await asyncio.sleep(60.1)
    found = await api.json("GET", path)
    assert found["spec"]["matchingPrecedence"] == (501 if kept else before["spec"]["matchingPrecedence"])
    assert found["metadata"]["annotations"] == {"apf.kubernetes.io/autoupdate-spec": str(not kept).lower()}
    version = found["metadata"]["resourceVersion"]
    await asyncio.sleep(600)
    assert (await api.json("GET", path))["metadata"]["resourceVersion"] == version


async def test_an_exempt_level_keeps_its_shares(api: Any) -> None:
    await begin(api)
    path = f"{FLOWS}/prioritylevelconfigurations/exempt"
    changed = {
        "metadata": {"annotations": {"apf.kubernetes.io/autoupdate-spec": "false"}},
        "spec": {"exempt": {"nominalConcurrencyShares": 7}},
    }
    await api.json("PATCH", path, changed, **MERGE)
    await asyncio.sleep(60.1)
    found = await api.json("GET", path)
    assert found["spec"]["exempt"]["nominalConcurrencyShares"] == 7
    assert found["metadata"]["annotations"] == {"apf.kubernetes.io/autoupdate-spec": "true"}


async def test_the_date_of_legacy_tokens_returns_once_in_half_an_hour(api: Any) -> None:
    await begin(api)
    path = "/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking"
    await asyncio.sleep(86400 * 2)
    await api.json("DELETE", path)
    await asyncio.sleep(1)
    assert (await api.json("GET", path))["data"] == {"since": "2030-01-03"}
    await api.json("DELETE", path)
    await asyncio.sleep(1700)
    assert (await api.call("GET", path)).status == 404
    await asyncio.sleep(101)
    assert (await api.json("GET", path))["data"] == {"since": "2030-01-03"}


async def test_system_priority_classes_are_not_deleted(api: Any) -> None:
    await begin(api)
    for name in ("system-node-critical", "system-cluster-critical"):
        path = f"/apis/scheduling.k8s.io/v1/priorityclasses/{name}"
        refused = await api.json("DELETE", path, status=403)
        named = f'priorityclasses.scheduling.k8s.io "{name}"'
        assert refused["message"] == f"{named} is forbidden: this is a system priority class and cannot be deleted"
        await api.json("GET", path)
