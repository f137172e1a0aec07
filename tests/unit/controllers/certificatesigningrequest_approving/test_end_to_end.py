"""The controller in a whole sandbox, on virtual time."""

from typing import Any

from kcm_cli.planning.certificate_requests import KUBELET_CLIENT
from tests.kit.controlling import controllers
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
