"""The settings of a server: authorization, trusted tokens, admission, address ranges."""

import asyncio
import random
from collections.abc import Mapping
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from kcm_cli.component.clock import LoopClock
from kcm_cli.component.tokens import TokenSigner
from kcm_cli.machinery import codec
from kcm_cli.rest.transport import Request, Response
from kcm_cli.sandbox.apiserver.security.bootstrap import bootstrap_objects
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from kcm_cli.sandbox.apiserver.settings import Settings
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.types import User
from kcm_cli.sandbox.assembly import assemble

SECRETS = "/api/v1/namespaces/default/secrets"
TOKENS = {"some": User("someone"), "root": User("admin", groups=("system:masters",))}


class World:
    def __init__(self, certificates: Certificates, settings: Settings) -> None:
        self.store = Store(None)
        self._make = lambda: assemble(
            self.store, LoopClock(), random.Random(1), certificates, address="127.0.0.1:1", settings=settings
        )
        self._ranges = settings.service_ranges

    def ask(self, *requests: tuple[str, str, str, Any]) -> list[tuple[int, Any]]:
        """Sends requests (method, path, token, body); returns the status and document of each response."""

        async def main() -> list[tuple[int, Any]]:
            server = self._make()
            await server.bootstrap(bootstrap_objects(service_ranges=self._ranges))
            found = []
            for method, path, token, body in requests:
                headers: Mapping[str, str] = {"authorization": f"Bearer {token}"} if token else {}
                if body is not None:
                    headers = {**headers, "content-type": "application/json"}
                data = b"" if body is None else codec.encode(body)
                answer = await server.handle(Request(method, path, (), headers, data))
                assert isinstance(answer, Response)
                found.append((answer.status, codec.decode_doc(answer.body)))
            return found

        return asyncio.run(main())


@pytest.mark.parametrize(
    ("modes", "status"),
    [(("RBAC",), 403), (("RBAC", "AlwaysAllow"), 200), (("AlwaysDeny",), 403), (("Node", "RBAC"), 403)],
)
def test_modes_of_authorization(certificates: Certificates, modes: tuple[str, ...], status: int) -> None:
    world = World(certificates, Settings(tokens=TOKENS, authorization=modes))
    (someone, said), (master, _) = world.ask(("GET", SECRETS, "some", None), ("GET", SECRETS, "root", None))
    assert (someone, master) == (status, 200)
    assert ("Everything is forbidden." in said.get("message", "")) is (modes == ("AlwaysDeny",))


@pytest.mark.parametrize(("anonymous", "status"), [(True, 200), (False, 401)])
def test_requests_without_credentials(certificates: Certificates, anonymous: bool, status: int) -> None:
    assert World(certificates, Settings(anonymous=anonymous)).ask(("GET", "/version", "", None))[0][0] == status


def test_tokens_of_other_keys_and_issuers_count(certificates: Certificates) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    settings = Settings(
        tokens=TOKENS, issuers=("https://new", "https://old"), token_keys=(certificates.service_account_key, public)
    )
    world = World(certificates, settings)
    account = {"metadata": {"name": "robot"}}
    path = "/api/v1/namespaces/default/serviceaccounts"
    (_, made), (_, asked) = world.ask(
        ("POST", path, "root", account), ("POST", f"{path}/robot/token", "root", {"spec": {}})
    )
    claims = {
        "aud": ["https://new"],
        "exp": 4102444800,
        "iat": 1,
        "nbf": 1,
        "sub": "system:serviceaccount:default:robot",
        "kubernetes.io": {
            "namespace": "default",
            "serviceaccount": {"name": "robot", "uid": made["metadata"]["uid"]},
        },
    }
    older = TokenSigner.from_pem(private, "https://old").sign(claims)
    stranger = TokenSigner.from_pem(private, "https://other").sign(claims)
    answers = world.ask(*(("GET", SECRETS, token, None) for token in (asked["status"]["token"], older, stranger)))
    assert [status for status, _ in answers] == [403, 403, 401]


def test_plugins_that_are_turned_off(certificates: Certificates) -> None:
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    path = "/api/v1/namespaces/default/pods"
    ((refused, _),) = World(certificates, Settings(tokens=TOKENS)).ask(("POST", path, "root", pod))
    off = frozenset({"ServiceAccount", "DefaultTolerationSeconds"})
    ((made, doc),) = World(certificates, Settings(tokens=TOKENS, disabled_plugins=off)).ask(("POST", path, "root", pod))
    assert (refused, made) == (403, 201)
    assert not doc["spec"].get("volumes")
    assert not doc["spec"].get("tolerations")


def test_ranges_of_services(certificates: Certificates) -> None:
    world = World(certificates, Settings(tokens=TOKENS, service_ranges=("10.7.0.0/24", "fd00::/112")))
    body = {"metadata": {"name": "a"}, "spec": {"ipFamilyPolicy": "PreferDualStack", "ports": [{"port": 1}]}}
    path = "/api/v1/namespaces/default/services"
    (_, own), (status, made), (_, ranges) = world.ask(
        ("GET", f"{path}/kubernetes", "root", None),
        ("POST", path, "root", body),
        ("GET", "/apis/networking.k8s.io/v1/servicecidrs/kubernetes", "root", None),
    )
    assert own["spec"]["clusterIP"] == "10.7.0.1"
    assert status == 201
    first, second = made["spec"]["clusterIPs"]
    assert first.startswith("10.7.0.")
    assert second.startswith("fd00::")
    assert ranges["spec"]["cidrs"] == ["10.7.0.0/24", "fd00::/112"]


@pytest.mark.parametrize("kind", ["Mutating", "Validating"])
def test_webhooks_can_be_turned_off(certificates: Certificates, kind: str) -> None:
    webhook = {
        "name": "a.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
    }
    hooks = f"/apis/admissionregistration.k8s.io/v1/{kind.lower()}webhookconfigurations"
    writes = (
        ("POST", hooks, "root", {"metadata": {"name": "a"}, "webhooks": [webhook]}),
        ("POST", "/api/v1/namespaces/default/configmaps", "root", {"metadata": {"name": "a"}}),
    )
    off = frozenset({f"{kind}AdmissionWebhook"})
    assert [status for status, _ in World(certificates, Settings(tokens=TOKENS)).ask(*writes)] == [201, 500]
    world = World(certificates, Settings(tokens=TOKENS, disabled_plugins=off))
    assert [status for status, _ in world.ask(*writes)] == [201, 201]
