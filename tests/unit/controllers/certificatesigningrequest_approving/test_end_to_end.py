"""The controller in a whole sandbox, on virtual time."""

import logging
from typing import Any

import pytest
from msgspec.structs import replace

from kcm_cli.component.logs import V4, fields_of
from kcm_cli.planning.certificate_requests import KUBELET_CLIENT
from kcm_cli.rest.transport import Request, Response
from tests.kit.controlling import controllers
from tests.kit.faults import Rewriting
from tests.kit.world import World, resource
from tests.unit.planning.certificates import in_base64, name, request

REQUESTS = resource("certificatesigningrequests", "certificates.k8s.io", namespaced=False)


async def ask(world: World, key: str, *organizations: str) -> None:
    asked = request(name("system:node:n1", *organizations))
    spec = {"signerName": KUBELET_CLIENT, "usages": ["digital signature", "client auth"], "request": in_base64(asked)}
    await world.create(REQUESTS, {"metadata": {"name": key}, "spec": spec})


async def conditions_of(world: World, key: str) -> list[dict[str, Any]]:
    return (await world.get(REQUESTS, key)).get("status", {}).get("conditions", [])


async def test_a_kubelets_request_is_approved_if_its_user_is_authorized(world: World):
    await ask(world, "node", "system:nodes")
    await ask(world, "other", "people")
    async with controllers(world, names=["certificatesigningrequest-approving-controller"]):
        await world.wait(5)
        (approved,) = await conditions_of(world, "node")
        assert (approved["type"], approved["reason"]) == ("Approved", "AutoApproved")
        assert approved["message"] == "Auto approving kubelet client certificate after SubjectAccessReview."
        assert await conditions_of(world, "other") == []


async def test_a_request_whose_user_has_no_permission_is_retried_and_logged_at_v4(
    world: World, caplog: pytest.LogCaptureFixture
):
    asked: list[Request] = []

    def denied(request: Request, response: Response) -> Response:
        if not request.path.endswith("/subjectaccessreviews") or len(asked) == 6:
            return response
        asked.append(request)
        return replace(response, body=response.body.replace(b'"allowed":true', b'"allowed":false'))

    await ask(world, "node", "system:nodes")
    with caplog.at_level(V4):
        transport = Rewriting(world.server.transport(), denied)
        async with controllers(world, names=["certificatesigningrequest-approving-controller"], transport=transport):
            await world.wait(60)
    (approved,) = await conditions_of(world, "node")
    assert (approved["reason"], len(asked)) == ("AutoApproved", 6)
    lines = [record for record in caplog.records if "err" in fields_of(record) or record.levelno >= logging.ERROR]
    assert [(line.levelno, line.message) for line in lines] == [(V4, "Sync certificate request failed")] * 6
    assert all(fields_of(line)["csr"] == "node" and "nodeclient" in str(fields_of(line)["err"]) for line in lines)
