"""A Service holds its addresses and ports while it is written, and a refused one leaves them free."""

import asyncio
from typing import Any

import pytest

from tests.kit.api import Api

SERVICES = "/api/v1/namespaces/default/services"


def service(name: str, port: int = 80) -> dict[str, Any]:
    spec = {"type": "NodePort", "clusterIP": "10.0.7.7", "ports": [{"port": port, "nodePort": 30777}]}
    return {"metadata": {"name": name}, "spec": spec}


async def test_what_a_refused_service_took_is_free(api: Api) -> None:
    await api.json("POST", SERVICES, service("bad", port=0), status=422)
    await api.json("POST", SERVICES, service("good"), status=201)


async def test_a_dry_run_takes_nothing(api: Api) -> None:
    await api.json("POST", SERVICES, service("tried"), status=201, query={"dryRun": "All"})
    await api.json("POST", SERVICES, service("good"), status=201)


async def test_a_service_that_is_being_written_has_them(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    admission, admitted = api.server.api.core.admission, asyncio.Event()
    validate = admission.validate

    async def wait(attrs: Any) -> None:
        if attrs.name == "slow":
            await admitted.wait()
        await validate(attrs)

    monkeypatch.setattr(admission, "validate", wait)
    slow = asyncio.create_task(api.json("POST", SERVICES, service("slow"), status=201))
    await asyncio.sleep(1)
    refused = await api.json("POST", SERVICES, service("fast"), status=422)
    assert "already allocated" in refused["message"]
    admitted.set()
    await slow


async def test_an_update_that_fails_leaves_the_new_port_free(api: Api) -> None:
    made = await api.json("POST", SERVICES, service("one"), status=201)
    made["spec"]["ports"] = [{"port": 0, "nodePort": 30778}]
    await api.json("PUT", f"{SERVICES}/one", made, status=422)
    other = service("two")
    other["spec"] |= {"clusterIP": "10.0.7.8", "ports": [{"port": 80, "nodePort": 30778}]}
    await api.json("POST", SERVICES, other, status=201)


async def test_an_address_that_an_ipaddress_of_another_client_has_is_taken(api: Api) -> None:
    addresses = "/apis/networking.k8s.io/v1/ipaddresses"
    parent = {"group": "example.com", "resource": "gateways", "namespace": "default", "name": "g"}
    await api.make(addresses, {"metadata": {"name": "10.0.7.7"}, "spec": {"parentRef": parent}})
    refused = await api.json("POST", SERVICES, service("one"), status=422)
    assert refused["details"]["causes"][0] == {
        "reason": "FieldValueInvalid",
        "message": 'Invalid value: ["10.0.7.7"]: failed to allocate IP 10.0.7.7: provided IP is already allocated',
        "field": "spec.clusterIPs",
    }
    kept = await api.json("GET", f"{addresses}/10.0.7.7")
    assert kept["spec"]["parentRef"] == parent
    await api.json("DELETE", f"{addresses}/10.0.7.7")
    await api.make(SERVICES, service("one"))


async def test_an_address_with_a_finalizer_is_taken_until_that_is_removed(api: Api) -> None:
    await api.make(SERVICES, service("one"))
    path = "/apis/networking.k8s.io/v1/ipaddresses/10.0.7.7"
    await api.merge(path, {"metadata": {"finalizers": ["example.com/f"]}})
    await api.delete(f"{SERVICES}/one")
    assert "deletionTimestamp" in (await api.get(path)).doc["metadata"]
    await api.json("POST", SERVICES, service("two"), status=422)
    await api.merge(path, {"metadata": {"finalizers": None}})
    await api.make(SERVICES, service("two"))
