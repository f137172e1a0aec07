"""The missing data of token Secrets, their accounts, and the claims of tokens."""

import base64
import json

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from kcm_cli.api.core import SECRETS, Secret, ServiceAccount
from kcm_cli.api.well_known import ACCOUNT_TOKEN
from kcm_cli.controllers.serviceaccount_token import plan
from kcm_cli.controllers.serviceaccount_token.tokens import LegacyTokenSigner
from kcm_cli.engine.descriptor import StartError
from kcm_cli.machinery import codec
from kcm_cli.machinery.formats import base64_text
from kcm_cli.machinery.meta import ObjectMeta

CA = b"-----BEGIN CERTIFICATE-----"


def secret(
    data: dict[str, str] | None = None, type_: str = ACCOUNT_TOKEN, namespace: str = "ns", **notes: str
) -> Secret:
    annotations = {f"kubernetes.io/service-account.{key}": value for key, value in notes.items()}
    metadata = {"name": "s", "namespace": namespace, "annotations": annotations}
    encoded = None if data is None else {key: base64_text(value.encode()) for key, value in data.items()}
    return SECRETS.decode(codec.encode({"metadata": metadata, "type": type_, "data": encoded}))


FULL = {"ca.crt": CA.decode(), "namespace": "ns", "token": "t"}


@pytest.mark.parametrize(
    ("data", "root_ca", "expected"),
    [
        pytest.param(None, CA, {"ca.crt", "namespace", "token"}, id="no data"),
        pytest.param({}, CA, {"ca.crt", "namespace", "token"}, id="empty"),
        pytest.param(FULL, CA, set(), id="full"),
        pytest.param(FULL | {"ca.crt": "another"}, CA, {"ca.crt"}, id="another CA is replaced"),
        pytest.param({"namespace": "ns", "token": "t"}, b"", set(), id="no CA to give"),
        pytest.param(FULL, b"", set(), id="another CA is kept"),
        pytest.param(FULL | {"namespace": "other"}, CA, set(), id="any namespace will do"),
        pytest.param(FULL | {"namespace": ""}, CA, {"namespace"}, id="an empty namespace"),
        pytest.param(FULL | {"token": ""}, CA, {"token"}, id="an empty token"),
    ],
)
def test_missing(data: dict[str, str] | None, root_ca: bytes, expected: set[str]) -> None:
    assert plan.plan(secret(data), root_ca) == expected


ACCOUNT = ServiceAccount(metadata=ObjectMeta(name="a", namespace="ns", uid="u"))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(secret(name="a", uid="u"), True, id="its own"),
        pytest.param(secret(name="a"), True, id="without a uid"),
        pytest.param(secret(name="a", uid="other"), False, id="of another one of the name"),
        pytest.param(secret(name="b", uid="u"), False, id="of another"),
        pytest.param(secret(name="a", uid="u", type_="Opaque"), False, id="another type"),
        pytest.param(secret(name="a", uid="u", namespace="other"), False, id="another namespace"),
    ],
)
def test_belongs_to(found: Secret, expected: bool) -> None:
    assert plan.belongs_to(found, ACCOUNT) is expected


# -- tokens


def saved(key, folder, password: bytes | None = None) -> str:
    cipher = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    text = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, cipher)
    path = folder / "key"
    path.write_bytes(text)
    return str(path)


def part(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


KEYS = [
    pytest.param(lambda: rsa.generate_private_key(65537, 2048), "RS256", hashes.SHA256(), 0, id="RSA"),
    pytest.param(lambda: ec.generate_private_key(ec.SECP256R1()), "ES256", hashes.SHA256(), 32, id="P-256"),
    pytest.param(lambda: ec.generate_private_key(ec.SECP384R1()), "ES384", hashes.SHA384(), 48, id="P-384"),
    pytest.param(lambda: ec.generate_private_key(ec.SECP521R1()), "ES512", hashes.SHA512(), 66, id="P-521"),
]


@pytest.mark.parametrize(("make", "algorithm", "digest", "size"), KEYS)
def test_a_token_verifies_and_names_its_account(tmp_path, make, algorithm, digest, size):
    key = make()
    signer = LegacyTokenSigner.from_file(saved(key, tmp_path))
    token = signer.legacy_token(namespace="ns", account="a", uid="u", secret="s")
    header, claims, signature = token.split(".")
    signed, raw, public = f"{header}.{claims}".encode(), part(signature), key.public_key()
    if size:
        r, s = int.from_bytes(raw[:size], "big"), int.from_bytes(raw[size:], "big")
        public.verify(encode_dss_signature(r, s), signed, ec.ECDSA(digest))
    else:
        public.verify(raw, signed, padding.PKCS1v15(), digest)
    assert json.loads(part(header))["alg"] == algorithm
    prefix = "kubernetes.io/serviceaccount"
    assert json.loads(part(claims)) == {
        "iss": "kubernetes/serviceaccount",
        "sub": "system:serviceaccount:ns:a",
        f"{prefix}/namespace": "ns",
        f"{prefix}/secret.name": "s",
        f"{prefix}/service-account.name": "a",
        f"{prefix}/service-account.uid": "u",
    }


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(lambda folder: str(folder / "none"), "cannot be read", id="no file"),
        pytest.param(lambda folder: saved(ed25519.Ed25519PrivateKey.generate(), folder), "unsupported kind", id="kind"),
        pytest.param(lambda folder: saved(ec.generate_private_key(ec.SECP256K1()), folder), "unsupported", id="curve"),
        pytest.param(
            lambda folder: saved(ec.generate_private_key(ec.SECP256R1()), folder, b"secret"), "unencrypted", id="locked"
        ),
    ],
)
def test_unsupported_keys(tmp_path, make, message):
    with pytest.raises(StartError, match=message):
        LegacyTokenSigner.from_file(make(tmp_path))


def test_a_file_without_a_key(tmp_path):
    (tmp_path / "key").write_text("hello")
    with pytest.raises(StartError, match="no unencrypted PEM private key"):
        LegacyTokenSigner.from_file(str(tmp_path / "key"))
