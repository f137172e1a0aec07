"""StorageClass.

Source: pkg/apis/storage/v1/defaults.go, pkg/apis/storage/validation,
pkg/registry/storage/storageclass/strategy.go, pkg/printers/internalversion/printers.go.
"""

from datetime import datetime

from kcm_cli.sandbox.apiserver.defaulting import fill
from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.kinds.storage.common import validate_driver, validate_parameters
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.strategy.warnings import nodes
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, Layout, created, name_of
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels, metadata

_POLICIES = ("Delete", "Retain")
_MODES = ("Immediate", "WaitForFirstConsumer")


def validate_storage_class(doc: Tree) -> list[FieldError]:
    found = metadata.validate_meta(doc["metadata"], False, metadata.subdomain)
    found += validate_driver(doc.get("provisioner", ""), "provisioner")
    found += validate_parameters(doc.get("parameters") or {}, "parameters")
    policy, mode = doc.get("reclaimPolicy"), doc.get("volumeBindingMode")
    if policy and policy not in _POLICIES:
        found.append(errors.not_supported("reclaimPolicy", policy, _POLICIES))
    if mode is None:
        found.append(errors.required("volumeBindingMode"))
    elif mode not in _MODES:
        found.append(errors.not_supported("volumeBindingMode", mode, _MODES))
    return found + _topologies(doc.get("allowedTopologies") or [], "allowedTopologies")


def validate_storage_class_update(new: Tree, old: Tree) -> list[FieldError]:
    found = validate_storage_class(new) + metadata.validate_meta_update(new["metadata"], old["metadata"])
    parameters = errors.sorted_map(new.get("parameters"))
    found += errors.fixed("parameters", parameters, errors.sorted_map(old.get("parameters")))
    found += errors.fixed("provisioner", new.get("provisioner", ""), old.get("provisioner", ""))
    for field in ("reclaimPolicy", "volumeBindingMode"):
        found += errors.fixed(field, new.get(field), old.get(field))
    return found


def _topologies(terms: list[Tree], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    # upstream: pkg/apis/storage/validation/validation.go#validateAllowedTopologies (starts with empty entries)
    seen: list[dict[str, set[str]]] = [{} for _ in terms]
    for index, term in enumerate(terms):
        place = f"{path}[{index}].matchLabelExpressions"
        values: dict[str, set[str]] = {}
        for number, item in enumerate(term.get("matchLabelExpressions") or ()):
            found += _topology(item, values, f"{place}[{number}]")
        found += [errors.duplicate(place, "") for other in seen if other == values]
        seen.append(values)
    return found


def _topology(item: Tree, seen: dict[str, set[str]], path: str) -> list[FieldError]:
    key, values = item.get("key", ""), item.get("values") or []
    found = [] if values else [errors.required(f"{path}.values")]
    for index, value in enumerate(values):
        if value in values[:index]:
            found.append(errors.duplicate(f"{path}.values[{index}]", value))
    found += labels.validate_key(key, f"{path}.key")
    if key in seen:
        found.append(errors.duplicate(f"{path}.key", key))
    seen[key] = set(values)
    return found


def _defaults(doc: Tree) -> None:
    fill.absent(doc, (("reclaimPolicy", "Delete"), ("volumeBindingMode", "Immediate")))


def of_storage_class(new: Tree, old: Tree | None) -> list[str]:
    """A StorageClass."""
    return [
        f"allowedTopologies[{index}].matchLabelExpressions[{number}].key: {nodes.DEPRECATED[item['key']]}"
        for index, term in enumerate(new.get("allowedTopologies") or ())
        for number, item in enumerate(term.get("matchLabelExpressions") or ())
        if item.get("key") in nodes.DEPRECATED
    ]


def _cells(doc: Tree, now: datetime) -> list[object]:
    annotations = doc["metadata"].get("annotations") or {}
    keys = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
    default = any(annotations.get(key) == "true" for key in keys)
    return [
        name_of(doc) + (" (default)" if default else ""),
        doc.get("provisioner", ""),
        doc.get("reclaimPolicy") or "Delete",
        doc.get("volumeBindingMode") or "Immediate",
        bool(doc.get("allowVolumeExpansion")),
        created(doc, now),
    ]


KIND = Kind(
    "storage.k8s.io",
    "storageclasses",
    defaults=_defaults,
    strategy=Strategy(
        namespaced=False,
        returns_object_on_delete=True,
        check_create=validate_storage_class,
        check_update=validate_storage_class_update,
        warn=of_storage_class,
    ),
    table=Layout(
        (
            NAME,
            Column("Provisioner", "StorageClass.provisioner"),
            Column("ReclaimPolicy", "StorageClass.reclaimPolicy"),
            Column("VolumeBindingMode", "StorageClass.volumeBindingMode"),
            Column("AllowVolumeExpansion", "StorageClass.allowVolumeExpansion"),
            AGE,
        ),
        _cells,
    ),
)
