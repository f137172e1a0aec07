"""Authentication: certificates, tokens of three kinds, anonymous requests, and the expiration of tokens."""

import base64
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from kcm_cli.api.resource import GVR
from kcm_cli.component.clock import LoopClock
from kcm_cli.component.tokens import TokenError, TokenSigner, TokenVerifier
from kcm_cli.component.user_headers import ProxyHeaders
from kcm_cli.sandbox.apiserver.security.assembly import Security
from kcm_cli.sandbox.apiserver.security.bootstrap import bootstrap_objects
from kcm_cli.sandbox.apiserver.security.certificates import Certificates, KeyPair
from kcm_cli.sandbox.apiserver.settings import ISSUER, Proxies, Settings
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.types import ANONYMOUS, ApiError, User

Tree = dict[str, Any]
SOCKET = {"upgrade": "websocket", "connection": "Upgrade"}
SOCKET_TOKEN = "base64url.bearer.authorization.k8s.io.c3RhdGlj"
START = datetime(2030, 1, 1, tzinfo=UTC)
ACCOUNTS, SECRETS = GVR("", "v1", "serviceaccounts"), GVR("", "v1", "secrets")
PODS, NODES = GVR("", "v1", "pods"), GVR("", "v1", "nodes")


class SetClock(LoopClock):
    """A wall clock that a test sets."""

    def __init__(self) -> None:
        super().__init__()
        self.time = START

    def now(self) -> datetime:
        return self.time


@dataclass
class World:
    certificates: Certificates
    proxies: Proxies | None = None
    clock: SetClock = field(default_factory=SetClock)
    store: Store = field(default_factory=lambda: Store(None))
    security: Security = field(init=False)

    def __post_init__(self) -> None:
        self.security = Security.assemble(
            self.store, self.clock, random.Random(1), self.certificates,
            Settings(tokens={"static": User("someone", groups=("people",))}, proxies=self.proxies), "localhost:6443",
        )  # fmt: skip
        self.put(ACCOUNTS, "robot", "u1")

    def put(self, gvr: GVR, name: str, uid: str, **more: Any) -> None:
        namespace = "" if gvr == NODES else "ns"
        metadata = {"name": name, "namespace": namespace, "uid": uid, **more.pop("metadata", {})}
        self.store.create(gvr, namespace, name, {"metadata": metadata, **more})

    def token(self, **spec: Any) -> str:
        answer: Tree = self.security.token_requests.create("ns", "robot", {"spec": spec})
        text: str = answer["status"]["token"]
        return text

    def user(self, token: str, warnings: list[str] | None = None) -> User:
        headers = {"authorization": f"Bearer {token}"}
        return self.security.authenticator.authenticate(headers, None, warnings)

    def refused(self, token: str) -> bool:
        with pytest.raises(ApiError) as raised:
            self.user(token)
        return raised.value.code == 401

    def why(self, token: str) -> str:
        return self.security.authenticator.review(token, (), []).error


@pytest.fixture
def world(certificates: Certificates) -> World:
    return World(certificates)


@pytest.mark.parametrize(
    ("headers", "user"),
    [
        pytest.param({}, ANONYMOUS, id="nothing"),
        pytest.param({"authorization": "Basic eDp5"}, ANONYMOUS, id="another scheme"),
        pytest.param({"authorization": "Bearer"}, ANONYMOUS, id="no token"),
        pytest.param({"authorization": "bearer static"}, "someone", id="case of the scheme"),
        pytest.param({"authorization": "Bearer static"}, "someone", id="static"),
        pytest.param({**SOCKET, "sec-websocket-protocol": f"{SOCKET_TOKEN}, x"}, "someone", id="protocol"),
        pytest.param({"sec-websocket-protocol": f"{SOCKET_TOKEN}, x"}, ANONYMOUS, id="no WebSocket"),
    ],
)
def test_headers(world: World, headers: dict[str, str], user: User | str) -> None:
    found = world.security.authenticator.authenticate(headers)
    if isinstance(user, str):
        assert (found.name, found.groups) == (user, ("people", "system:authenticated"))
    else:
        assert found == user


@pytest.mark.parametrize("token", ["wrong", "a.b.c", "x" * 4000])
def test_an_unknown_token_is_refused(world: World, token: str) -> None:
    assert world.refused(token)


def test_a_certificate_identifies_the_user(world: World, certificates: Certificates) -> None:
    der = der_of(certificates.client("jane", ("dev", "ops")))
    user = world.security.authenticator.authenticate({"authorization": "Bearer static"}, der)
    assert (user.name, user.groups) == ("jane", ("dev", "ops", "system:authenticated"))
    assert user.extra["authentication.kubernetes.io/credential-id"][0].startswith("X509SHA256=")
    world.clock.time += timedelta(days=10000)
    assert nobody(world, der), "it has expired"


def nobody(world: World, der: bytes) -> bool:
    with pytest.raises(ApiError) as raised:
        world.security.authenticator.authenticate({}, der)
    return raised.value.code == 401


def test_a_token_counts_where_a_certificate_does_not(world: World) -> None:
    der = der_of(Certificates.load(None, START).client("jane"))
    assert nobody(world, der)
    assert world.security.authenticator.authenticate({"authorization": "Bearer static"}, der).name == "someone"


FRONT = Certificates.load(None, START)
NAMES = ProxyHeaders(
    ("X-Remote-User", "X-User"), ("X-Remote-Uid",), ("X-Remote-Group",), ("X-Remote-Extra-",), ("front",)
)
NAMED = {
    "x-remote-user": "zo\xc3\xab\nother",
    "x-remote-uid": "7",
    "x-remote-group": "dev\n\nops, qa",
    "x-remote-extra-acme.com%2fscope": "x\ny",
    "authorization": "Bearer static",
}


def der_of(pair: KeyPair) -> bytes:
    return x509.load_pem_x509_certificate(pair.certificate).public_bytes(serialization.Encoding.DER)


def test_a_proxy_names_the_user(certificates: Certificates) -> None:
    found = World(certificates, Proxies(FRONT.ca.certificate, NAMES)).security.authenticator
    user = found.authenticate(NAMED, der_of(FRONT.client("front")))
    assert (user.name, user.uid, user.groups) == ("zo\xeb", "7", ("dev", "ops, qa", "system:authenticated"))
    assert user.extra == {"acme.com/scope": ("x", "y")}
    assert found.authenticate({"x-user": "jane"}, der_of(FRONT.client("front"))).name == "jane"
    assert found.passed_on({**NAMED, "accept": "a"}) == {"authorization": "Bearer static", "accept": "a"}


@pytest.mark.parametrize(
    ("proxy", "headers", "name"),
    [
        ("front", {"authorization": "Bearer static"}, "someone"),
        ("front", {"x-remote-uid": "7"}, ""),
        ("back", NAMED, "someone"),
        ("back", {"x-remote-user": "jane"}, ""),
        ("client", NAMED, "jane"),
        ("", {"x-remote-user": "jane"}, "system:anonymous"),
    ],
    ids=["no user", "no user, no token", "not allowed", "not allowed, no token", "a client", "no certificate"],
)
def test_who_is_no_proxy_is_asked_for_credentials(
    certificates: Certificates, proxy: str, headers: dict[str, str], name: str
) -> None:
    found = World(certificates, Proxies(FRONT.ca.certificate, NAMES)).security.authenticator
    der = der_of(certificates.client("jane") if proxy == "client" else FRONT.client(proxy)) if proxy else None
    if name:
        assert found.authenticate(headers, der).name == name
    else:
        with pytest.raises(ApiError) as raised:
            found.authenticate(headers, der)
        assert raised.value.code == 401


def test_the_trust_in_proxies_is_published() -> None:
    docs = bootstrap_objects(client_ca="ca", proxies=Proxies(b"# Latin-1: \xe9", NAMES))
    (data,) = [doc["data"] for doc in docs if doc["metadata"]["name"] == "extension-apiserver-authentication"]
    assert data == {
        "client-ca-file": "ca",
        "requestheader-client-ca-file": "# Latin-1: \ufffd",
        "requestheader-username-headers": '["X-Remote-User","X-User"]',
        "requestheader-uid-headers": '["X-Remote-Uid"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
        "requestheader-allowed-names": '["front"]',
    }


def test_a_requested_token_identifies_its_service_account(world: World) -> None:
    user = world.user(world.token())
    assert (user.name, user.uid) == ("system:serviceaccount:ns:robot", "u1")
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated")
    assert user.extra["authentication.kubernetes.io/credential-id"][0].startswith("JTI=")


@pytest.mark.parametrize(
    ("asked", "granted"),
    [(None, 3600), (600, 600), (1 << 31, 1 << 31)],
    ids=["an hour by default", "ten minutes at least", "long"],
)
def test_a_token_expires_at_its_time(world: World, asked: int | None, granted: int) -> None:
    token = world.token(**({} if asked is None else {"expirationSeconds": asked}))
    world.clock.time = START + timedelta(seconds=granted + 59)
    assert world.user(token).name.endswith("robot")
    world.clock.time += timedelta(seconds=2)
    assert world.refused(token)
    assert world.why(token) == "[invalid bearer token, service account token has expired]"


@pytest.mark.parametrize("seconds", [599, -1, (1 << 32) + 1])
def test_expirations_that_are_refused(world: World, seconds: int) -> None:
    with pytest.raises(ApiError) as raised:
        world.token(expirationSeconds=seconds)
    assert raised.value.code == 422


def test_tokens_for_other_audiences_are_refused(world: World) -> None:
    token = world.token(audiences=["vault"])
    assert world.refused(token)
    assert world.security.authenticator.review(token, ("vault", "x"), []).found is not None
    several = world.token(audiences=["a", "b", "a"])
    found = world.security.authenticator.review(several, ("b", "a"), []).found
    assert found is not None and found.audiences == ("b", "a"), "as they were asked for"
    assert world.why(token) == (
        f'[invalid bearer token, token audiences ["vault"] is invalid for the target audiences ["{ISSUER}"]]'
    )


def test_a_token_is_revoked_with_its_service_account(world: World) -> None:
    token = world.token()
    world.store.delete(ACCOUNTS, "ns", "robot")
    assert world.refused(token)
    world.put(ACCOUNTS, "robot", "u2")
    assert world.why(token) == "[invalid bearer token, service account UID (u2) does not match claim (u1)]"


@pytest.mark.parametrize(
    ("gvr", "kind", "extra"),
    [
        pytest.param(PODS, "Pod", {"pod-name": ("o",), "pod-uid": ("o1",)}, id="pod"),
        pytest.param(SECRETS, "Secret", {}, id="secret"),
        pytest.param(NODES, "Node", {"node-name": ("o",), "node-uid": ("o1",)}, id="node"),
    ],
)
def test_a_token_is_revoked_with_its_bound_object(world: World, gvr: GVR, kind: str, extra: Tree) -> None:
    namespace = "" if gvr == NODES else "ns"
    world.put(gvr, "o", "o1", spec={"serviceAccountName": "robot"})
    token = world.token(boundObjectRef={"apiVersion": "v1", "kind": kind, "name": "o"})
    found = dict(world.user(token).extra)
    found.pop("authentication.kubernetes.io/credential-id")
    assert found == {f"authentication.kubernetes.io/{key}": value for key, value in extra.items()}
    world.store.delete(gvr, namespace, "o")
    assert world.why(token) == "[invalid bearer token, service account token has been invalidated]"
    world.put(gvr, "o", "o2", spec={"serviceAccountName": "robot"})
    assert world.refused(token)


def legacy(world: World, certificates: Certificates, name: str = "t", **labels: str) -> str:
    """A token in a Secret, as the manager's controller creates it."""
    claims = {
        "sub": "system:serviceaccount:ns:robot",
        "kubernetes.io/serviceaccount/namespace": "ns",
        "kubernetes.io/serviceaccount/secret.name": name,
        "kubernetes.io/serviceaccount/service-account.name": "robot",
        "kubernetes.io/serviceaccount/service-account.uid": "u1",
    }
    token = TokenSigner.from_pem(certificates.service_account_key, "kubernetes/serviceaccount").sign(claims)
    data = {"token": base64.b64encode(token.encode()).decode()}
    world.put(SECRETS, name, "s1", data=data, metadata={"labels": labels})
    return token


def test_a_token_of_a_secret_lasts_as_long_as_the_secret(world: World, certificates: Certificates) -> None:
    token = legacy(world, certificates)
    world.clock.time += timedelta(days=5000)
    assert world.user(token).name == "system:serviceaccount:ns:robot"
    stored = world.store.get(SECRETS, "ns", "t")
    assert stored is not None
    metadata: Any = stored.doc["metadata"]
    assert metadata["labels"]["kubernetes.io/legacy-token-last-used"] == f"{world.clock.time:%Y-%m-%d}"
    world.store.delete(SECRETS, "ns", "t")
    assert world.why(token) == "[invalid bearer token, Token has been invalidated]"


def test_a_secret_may_be_marked_invalid(world: World, certificates: Certificates) -> None:
    token = legacy(world, certificates, **{"kubernetes.io/legacy-token-invalid-since": "2030-01-01"})
    assert "has been marked invalid" in world.why(token)


def test_tokens_of_the_accounts_own_secrets_are_warned_of(world: World, certificates: Certificates) -> None:
    world.store.delete(ACCOUNTS, "ns", "robot")
    world.put(ACCOUNTS, "robot", "u1", secrets=[{"name": "t"}])
    warnings: list[str] = []
    world.user(legacy(world, certificates), warnings)
    assert warnings and "auto-generated" in warnings[0]


KEYS = {
    "RS256": rsa.generate_private_key(65537, 2048),
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "ES384": ec.generate_private_key(ec.SECP384R1()),
    "ES512": ec.generate_private_key(ec.SECP521R1()),
}


@pytest.mark.parametrize("algorithm", KEYS)
def test_signatures_of_all_key_types(algorithm: str) -> None:
    signer = TokenSigner(KEYS[algorithm], "me")
    assert signer.public.algorithm == algorithm
    token = signer.sign({"a": 1})
    assert TokenVerifier([signer.public]).claims(token) == {"a": 1, "iss": "me"}
    head, body, tail = token.split(".")
    forged = f"{head}.{base64.urlsafe_b64encode(b'{}').decode().rstrip('=')}.{tail}"
    for wrong in (forged, f"{head}.{body}.{tail[:-4]}AAAA", f"{head}.{body}"):
        with pytest.raises(TokenError):
            TokenVerifier([signer.public]).claims(wrong)
    stranger = TokenSigner(KEYS["ES256" if algorithm != "ES256" else "RS256"], "me")
    with pytest.raises(TokenError, match="no keys found"):
        TokenVerifier([stranger.public]).claims(token)


def test_public_keys_are_published(world: World) -> None:
    configuration = world.security.openid.answer("/.well-known/openid-configuration")
    assert configuration is not None
    assert configuration.body == (
        b'{"issuer":"https://kubernetes.default.svc","jwks_uri":"https://localhost:6443/openid/v1/jwks",'
        b'"response_types_supported":["id_token"],"subject_types_supported":["public"],'
        b'"id_token_signing_alg_values_supported":["RS256"]}'
    )
    keys = world.security.openid.answer("/openid/v1/jwks")
    assert keys is not None and keys.headers["content-type"] == "application/jwk-set+json"
