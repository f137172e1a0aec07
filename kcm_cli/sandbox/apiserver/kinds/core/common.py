"""What the kinds of core share."""

from kcm_cli.machinery.quantity import from_json
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors

SIZE_LIMIT = 1024 * 1024
"""Bytes of data that a ConfigMap or Secret may hold."""

_LOCKED = "field is immutable when `immutable` is set"


def validate_locked(new: Tree, old: Tree, fields: tuple[str, ...]) -> Errors:
    if not old.get("immutable"):
        return
    if not new.get("immutable"):
        yield errors.forbidden("immutable", _LOCKED)
    changed = [field for field in fields if (new.get(field) or {}) != (old.get(field) or {})]
    yield from (errors.forbidden(field, _LOCKED) for field in changed)


def decoded_size(text: str) -> int:
    return len(text) * 3 // 4 - text.count("=", -2)


def basic(value: str, path: str) -> Errors:
    """Not below zero, printed as a whole number."""
    whole = from_json(value).value()
    return [errors.invalid(path, whole, "must be a valid resource quantity")] if whole < 0 else []


CLASS = "volume.beta.kubernetes.io/storage-class"
CLASS_TEXT = 'deprecated since v1.8; use "storageClassName" attribute instead'

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def mode_text(modes: list[str] | None) -> str:
    found = set(modes or ())
    return ",".join(short for mode, short in _MODES.items() if mode in found)


def class_of(doc: Tree) -> str:
    annotations = doc["metadata"].get("annotations") or {}
    found = annotations.get(CLASS)
    return str((doc.get("spec") or {}).get("storageClassName") or "") if found is None else found
