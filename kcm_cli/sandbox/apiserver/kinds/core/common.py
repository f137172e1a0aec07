"""What the kinds of core share."""

from datetime import datetime

from kcm_cli.api.well_known import BETA_STORAGE_CLASS
from kcm_cli.machinery import names
from kcm_cli.machinery.quantity import from_json
from kcm_cli.sandbox.apiserver.tables.column import Cell, at
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, metadata

SIZE_LIMIT = 1024 * 1024
"""The limit for the data of a ConfigMap or Secret, in bytes."""

_LOCKED = "field is immutable when `immutable` is set"


def validate_locked(new: Tree, old: Tree, *fields: str) -> Errors:
    """Check that an immutable object remains immutable, and that these fields of it do not change."""
    if not old.get("immutable"):
        return
    if not new.get("immutable"):
        yield errors.forbidden("immutable", _LOCKED)
    for field in fields:
        if (new.get(field) or {}) != (old.get(field) or {}):
            yield errors.forbidden(field, _LOCKED)


def needs_version(new: Tree, old: Tree) -> Errors:
    """Check that an update of the status has a resourceVersion."""
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])
    if not new["metadata"].get("resourceVersion"):
        yield errors.required("resourceVersion")


def validate_keys(data: Tree, field: str) -> Errors:
    """Check the keys of the data of a ConfigMap or Secret."""
    for key in data:
        yield from errors.invalid_each(f"{field}[{key}]", key, names.config_map_key(key))


def decoded_size(text: str) -> int:
    return len(text) * 3 // 4 - text.count("=", -2)


def basic(value: str, path: str) -> Errors:
    """Check that a quantity is not negative. Errors print it as an integer."""
    whole = from_json(value).value()
    return [errors.invalid(path, whole, "must be a valid resource quantity")] if whole < 0 else []


CLASS_TEXT = 'deprecated since v1.8; use "storageClassName" attribute instead'

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def modes_at(path: str) -> Cell:
    """The access modes at a path, abbreviated."""
    modes = at(path, ())
    return lambda doc, now: ",".join(short for mode, short in _MODES.items() if mode in modes(doc, now))


def phase(doc: Tree, now: datetime) -> str:
    """The phase of a volume or claim, or ``Terminating``."""
    status = doc.get("status") or {}
    return "Terminating" if doc["metadata"].get("deletionTimestamp") else status.get("phase", "")


def class_of(doc: Tree, now: datetime) -> str:
    annotations = doc["metadata"].get("annotations") or {}
    found = annotations.get(BETA_STORAGE_CLASS)
    return str((doc.get("spec") or {}).get("storageClassName") or "") if found is None else found
