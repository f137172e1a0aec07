"""Namespaces, ConfigMaps, Secrets and ServiceAccounts.

Source: pkg/apis/core/validation/validation.go.
"""

import base64
import binascii

from kcm_cli.machinery import codec, names
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors, metadata

SIZE_LIMIT = 1024 * 1024
"""Bytes of data that a ConfigMap or Secret may hold."""

_LOCKED = "field is immutable when `immutable` is set"
_NOT_A_FINALIZER = "name is neither a standard finalizer name nor is it fully qualified"
_STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
_REDACTED = "<secret contents redacted>"


def validate_namespace(doc: Tree) -> list[FieldError]:
    found = metadata.validate_meta(doc["metadata"], False, metadata.label)
    for name in (doc.get("spec") or {}).get("finalizers") or ():
        found += _finalizer(name, "spec.finalizers")
    return found


def validate_namespace_update(new: Tree, old: Tree) -> list[FieldError]:
    return validate_namespace(new) + metadata.validate_meta_update(new["metadata"], old["metadata"])


def validate_namespace_status(new: Tree, old: Tree) -> list[FieldError]:
    found = metadata.validate_meta_update(new["metadata"], old["metadata"])
    phase = (new.get("status") or {}).get("phase", "")
    if not new["metadata"].get("deletionTimestamp"):
        if phase != "Active":
            detail = "may only be 'Active' if `deletionTimestamp` is empty"
            found.append(errors.invalid("status.Phase", phase, detail))
    elif phase != "Terminating":
        detail = "may only be 'Terminating' if `deletionTimestamp` is not empty"
        found.append(errors.invalid("status.Phase", phase, detail))
    return found


def validate_namespace_finalize(new: Tree, old: Tree) -> list[FieldError]:
    found = metadata.validate_meta_update(new["metadata"], old["metadata"])
    for index, name in enumerate((new.get("spec") or {}).get("finalizers") or ()):
        found += _finalizer(name, f"spec.finalizers[{index}]")
    return found


def _finalizer(name: str, path: str) -> list[FieldError]:
    found = errors.invalid_each(path, name, names.qualified_name(name))
    if "/" not in name and name not in _STANDARD_FINALIZERS:
        found.append(errors.invalid(path, name, _NOT_A_FINALIZER))
    return found


def validate_config_map(doc: Tree) -> list[FieldError]:
    found = metadata.validate_meta(doc["metadata"], True, metadata.subdomain)
    data, binary = doc.get("data") or {}, doc.get("binaryData") or {}
    size = 0
    for key, value in data.items():
        path = f"data[{key}]"
        found += errors.invalid_each(path, key, names.config_map_key(key))
        if key in binary:
            found.append(errors.invalid(path, key, "duplicate of key present in binaryData"))
        size += len(value.encode())
    for key, value in binary.items():
        found += errors.invalid_each(f"binaryData[{key}]", key, names.config_map_key(key))
        size += _decoded_size(value)
    if size > SIZE_LIMIT:
        found.append(errors.too_long("[]", SIZE_LIMIT))
    return found


def validate_config_map_update(new: Tree, old: Tree) -> list[FieldError]:
    found = metadata.validate_meta_update(new["metadata"], old["metadata"])
    found += _locked(new, old, ("data", "binaryData"))
    return found + validate_config_map(new)


def _locked(new: Tree, old: Tree, fields: tuple[str, ...]) -> list[FieldError]:
    if not old.get("immutable"):
        return []
    found = [] if new.get("immutable") else [errors.forbidden("immutable", _LOCKED)]
    changed = [field for field in fields if (new.get(field) or {}) != (old.get(field) or {})]
    return found + [errors.forbidden(field, _LOCKED) for field in changed]


def _decoded_size(text: str) -> int:
    return len(text) * 3 // 4 - text.count("=", -2)


def validate_secret(doc: Tree) -> list[FieldError]:
    found = metadata.validate_meta(doc["metadata"], True, metadata.subdomain)
    data = doc.get("data") or {}
    for key in data:
        found += errors.invalid_each(f"data[{key}]", key, names.config_map_key(key))
    if sum(_decoded_size(value) for value in data.values()) > SIZE_LIMIT:
        found.append(errors.too_long("data", SIZE_LIMIT))
    return found + _secret_type(doc, data)


def _secret_type(doc: Tree, data: Tree) -> list[FieldError]:
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


def _entries(missing: tuple[str, ...]) -> list[FieldError]:
    return [errors.required(f"data[{key}]") for key in missing]


def _json_entry(data: Tree, key: str) -> list[FieldError]:
    if key not in data:
        return _entries((key,))
    try:
        codec.decode_doc(base64.b64decode(data[key]))
    except (codec.DecodeError, binascii.Error) as error:
        return [errors.invalid(f"data[{key}]", _REDACTED, _go_message(base64.b64decode(data[key]), error))]
    return []


def _go_message(raw: bytes, error: Exception) -> str:
    """What Go's decoder says of the most frequent mistakes."""
    text = raw.decode(errors="replace").strip()
    if not text:
        return "unexpected end of JSON input"
    if text[0] not in '{["-0123456789tfn':
        return f"invalid character '{text[0]}' looking for beginning of value"
    return str(error)


def validate_secret_update(new: Tree, old: Tree) -> list[FieldError]:
    found = metadata.validate_meta_update(new["metadata"], old["metadata"])
    if new.get("type") != old.get("type"):
        found.append(errors.invalid("type", new.get("type", ""), errors.IMMUTABLE))
    return found + _locked(new, old, ("data",)) + validate_secret(new)


def validate_service_account(doc: Tree) -> list[FieldError]:
    return metadata.validate_meta(doc["metadata"], True, metadata.subdomain)


def validate_service_account_update(new: Tree, old: Tree) -> list[FieldError]:
    return metadata.validate_meta_update(new["metadata"], old["metadata"]) + validate_service_account(new)
