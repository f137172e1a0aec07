"""The controller in a whole sandbox, on virtual time."""

import base64
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography import x509

from kcm_cli.component.clock import RealClock
from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.certificatesigningrequest_signing.config import CSRSigningConfig
from kcm_cli.controllers.certificatesigningrequest_signing.controller import CONTROLLER, files_of
from kcm_cli.engine.building import build
from kcm_cli.engine.descriptor import StartError
from tests.kit.controlling import adds, controllers
from tests.kit.world import World, resource
from tests.unit.planning.certificates import in_base64, request

REQUESTS = resource("certificatesigningrequests", "certificates.k8s.io", namespaced=False)
CLIENT = "kubernetes.io/kube-apiserver-client"
APPROVED = {"type": "Approved", "status": "True", "reason": "Test", "message": "by the test"}


async def ask(
    world: World, name: str, signer: str = CLIENT, usage: str = "client auth", *, approve: bool = True
) -> None:
    spec = {"signerName": signer, "usages": [usage], "request": in_base64(request())}
    await world.create(REQUESTS, {"metadata": {"name": name}, "spec": spec})
    if approve:
        doc = await world.get(REQUESTS, name)
        doc["status"] = {"conditions": [APPROVED]}
        await world.client.update(REQUESTS, "", name, doc, subresource="approval")


async def status_of(world: World, name: str) -> dict[str, Any]:
    return (await world.get(REQUESTS, name)).get("status", {})


async def test_only_approved_requests_are_signed_or_failed(world: World, ca):
    metrics = Registry()
    await ask(world, "good")
    await ask(world, "bad", usage="server auth")
    await ask(world, "waits", approve=False)
    await ask(world, "foreign", "example.com/signer")
    config = CSRSigningConfig(cert_file=ca[0], key_file=ca[1], duration_s=3600.0)
    names = ["certificatesigningrequest-signing-controller"]
    async with controllers(world, config, names=names, metrics=metrics):
        await world.wait(5)
        assert adds(metrics, "DynamicCABundle-csr-controller") == len(files_of(config))
        certificate = base64.b64decode((await status_of(world, "good"))["certificate"])
        assert x509.load_pem_x509_certificate(certificate).issuer.rfc4514_string() == "CN=ca"
        refused = await status_of(world, "bad")
        assert [(c["type"], c["reason"], c["message"]) for c in refused["conditions"]] == [
            ("Approved", "Test", "by the test"),
            ("Failed", "SignerValidationFailure", "invalid usage for client certificate: server auth"),
        ]
        assert [await status_of(world, name) for name in ("waits",)] == [{}]
        assert "certificate" not in refused | await status_of(world, "foreign")


def test_each_signer_can_have_its_ca():
    assert files_of(CSRSigningConfig()) == {}
    assert files_of(CSRSigningConfig(cert_file="c", key_file="k"))[CLIENT] == ("c", "k")
    own = CSRSigningConfig(kube_apiserver_client_cert_file="c", kube_apiserver_client_key_file="k")
    assert files_of(own) == {CLIENT: ("c", "k")}


def test_without_a_ca_nothing_runs_and_an_invalid_one_is_an_error(tmp_path):
    def context(config: CSRSigningConfig) -> Any:
        return SimpleNamespace(
            config=lambda kind: config, client=None, clock=RealClock(), queue_metrics=lambda name: None
        )

    assert build(CONTROLLER, context(CSRSigningConfig())) is None
    missing = CSRSigningConfig(cert_file=str(tmp_path / "no.crt"), key_file=str(tmp_path / "no.key"))
    with pytest.raises(StartError, match=r"the CA of signer kubernetes\.io/\S+ .* cannot be used"):
        CONTROLLER.make(context(missing))
