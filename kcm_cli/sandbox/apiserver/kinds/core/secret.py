"""Secret.

upstream: pkg/apis/core/v1/defaults.go, pkg/apis/core/validation,
pkg/registry/core/secret/strategy.go, pkg/printers/internalversion/printers.go
"""

import base64

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from kcm_cli.component import key_pairs
from kcm_cli.machinery import pem
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.formats import decoded_base64
from kcm_cli.sandbox.apiserver.defaulting import fill
from kcm_cli.sandbox.apiserver.kinds.core.common import SIZE_LIMIT, decoded_size, validate_keys, validate_locked
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.schema import gojson
from kcm_cli.sandbox.apiserver.selectable import Selectable
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, count, layout, of_field
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors

_KINDS = {"{": "", "n": "", "[": "array", '"': "string", "t": "bool", "f": "bool"}
"""The kind of a JSON value in Go's errors, by its first character; empty if it can be decoded to a map."""
_REDACTED = "<secret contents redacted>"


def _check(doc: Tree, old: Tree | None) -> Errors:
    data = doc.get("data") or {}
    yield from validate_keys(data, "data")
    if sum(decoded_size(value) for value in data.values()) > SIZE_LIMIT:
        yield errors.too_long("data", SIZE_LIMIT)
    yield from _secret_type(doc, data)


def _check_change(new: Tree, old: Tree) -> Errors:
    yield from errors.fixed("type", new.get("type", ""), old.get("type", ""))
    yield from validate_locked(new, old, "data")


def _secret_type(doc: Tree, data: Tree) -> Errors:
    match doc.get("type"):
        case "kubernetes.io/service-account-token":
            key = "kubernetes.io/service-account.name"
            if not (doc["metadata"].get("annotations") or {}).get(key):
                return [errors.required(f"metadata.annotations[{key}]")]
        case "kubernetes.io/dockercfg":
            return _json_entry(data, ".dockercfg")
        case "kubernetes.io/dockerconfigjson":
            return _json_entry(data, ".dockerconfigjson")
        case "kubernetes.io/basic-auth":
            if "username" not in data and "password" not in data:
                return _entries(("username", "password"))
        case "kubernetes.io/ssh-auth":
            if not data.get("ssh-privatekey"):
                return _entries(("ssh-privatekey",))
        case "kubernetes.io/tls":
            return _entries(tuple(key for key in ("tls.crt", "tls.key") if key not in data))
    return []


def _entries(missing: tuple[str, ...]) -> Errors:
    return [errors.required(f"data[{key}]") for key in missing]


def _json_entry(data: Tree, key: str) -> Errors:
    if key not in data:
        return _entries((key,))
    text = base64.b64decode(data[key]).decode(errors="replace")
    why = gojson.syntax_error(text)
    if why is None and (kind := _KINDS.get(text.lstrip()[0], "number")):
        why = f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
    if why is not None:
        return [errors.invalid(f"data[{key}]", _REDACTED, why)]
    return []


def _defaults(doc: Tree) -> None:
    fill.empty(doc, type="Opaque")
    if (plain := doc.pop("stringData", None)) is not None and plain:
        data = doc["data"] = dict(doc.get("data") or {})
        for key, value in plain.items():
            data[key] = base64.b64encode(value.encode()).decode()


def of_secret(new: Tree, old: Tree | None) -> list[str]:
    """A warning about a certificate and a key that do not match."""
    if new.get("type") != "kubernetes.io/tls":
        return []
    data = new.get("data") or {}
    problem = _pair_problem(decoded_base64(data.get("tls.crt", "")), decoded_base64(data.get("tls.key", "")))
    return [problem] if problem else []


def _pair_problem(certificate: bytes, key: bytes) -> str:
    chain = pem.chain(certificate)
    if not chain:
        return _no_certificate([block.type for block in pem.blocks(certificate)])
    if pem.private_key(key) is None:
        return _no_key([block.type for block in pem.blocks(key)])
    try:
        public = x509.load_der_x509_certificate(chain[0]).public_key()
    except (ValueError, UnsupportedAlgorithm, x509.InvalidVersion):
        return "x509: malformed certificate"
    try:
        own = key_pairs.pair_key(key).public_key()
    except FormatError:
        return "tls: failed to parse private key"
    if type(own) is not type(public):
        return "tls: private key type does not match public key type"
    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return "" if own.public_bytes(*form) == public.public_bytes(*form) else "tls: private key does not match public key"


def _no_certificate(types: list[str]) -> str:
    """Why none is found in blocks of these types."""
    if not types:
        return "tls: failed to find any PEM data in certificate input"
    if len(types) == 1 and types[0].endswith("PRIVATE KEY"):
        return (
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may"
            " have been switched"
        )
    return (
        'tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks of the following'
        f" types: [{' '.join(types)}]"
    )


def _no_key(types: list[str]) -> str:
    if not types:
        return "tls: failed to find any PEM data in key input"
    if types == [pem.CERTIFICATE]:
        return "tls: found a certificate rather than a key in the PEM for the private key"
    return (
        'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after skipping PEM blocks of the'
        f" following types: [{' '.join(types)}]"
    )


KIND = Kind(
    "",
    "secrets",
    defaults=_defaults,
    strategy=Strategy(
        on_update=lambda new, old: fill.empty(new, type=old.get("type", "")),
        check=_check,
        check_change=_check_change,
        update_steps=("metadata", "change", "name", "rules"),
        warn=of_secret,
    ),
    table=layout(NAME, Column("Type", *of_field("Secret", "type")), Column("Data", "Secret.data", count("data")), AGE),
    selectable=Selectable({"type": "type"}),
)
