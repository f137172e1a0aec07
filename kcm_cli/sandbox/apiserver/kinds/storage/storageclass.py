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
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels, metadata

_POLICIES = ("Delete", "Retain")
_MODES = ("Immediate", "WaitForFirstConsumer")


def validate_storage_class(doc: Tree) -> Errors:
    yield from metadata.validate_meta(doc["metadata"], False, metadata.subdomain)
    yield from validate_driver(doc.get("provisioner", ""), "provisioner")
    yield from validate_parameters(doc.get("parameters") or {}, "parameters")
    policy, mode = doc.get("reclaimPolicy"), doc.get("volumeBindingMode")
    if policy and policy not in _POLICIES:
        yield errors.not_supported("reclaimPolicy", policy, _POLICIES)
    if mode is None:
        yield errors.required("volumeBindingMode")
    elif mode not in _MODES:
        yield errors.not_supported("volumeBindingMode", mode, _MODES)
    yield from _topologies(doc.get("allowedTopologies") or [], "allowedTopologies")


def validate_storage_class_update(new: Tree, old: Tree) -> Errors:
    yield from validate_storage_class(new)
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])
    parameters = errors.sorted_map(new.get("parameters"))
    yield from errors.fixed("parameters", parameters, errors.sorted_map(old.get("parameters")))
    yield from errors.fixed("provisioner", new.get("provisioner", ""), old.get("provisioner", ""))
    for field in ("reclaimPolicy", "volumeBindingMode"):
        yield from errors.fixed(field, new.get(field), old.get(field))


def _topologies(terms: list[Tree], path: str) -> Errors:
    # upstream: pkg/apis/storage/validation/validation.go#validateAllowedTopologies (starts with empty entries)
    seen: list[dict[str, set[str]]] = [{} for _ in terms]
    for index, term in enumerate(terms):
        place = f"{path}[{index}].matchLabelExpressions"
        values: dict[str, set[str]] = {}
        for number, item in enumerate(term.get("matchLabelExpressions") or ()):
            yield from _topology(item, values, f"{place}[{number}]")
        yield from (errors.duplicate(place, "") for other in seen if other == values)
        seen.append(values)


def _topology(item: Tree, seen: dict[str, set[str]], path: str) -> Errors:
    key, values = item.get("key", ""), item.get("values") or []
    if not values:
        yield errors.required(f"{path}.values")
    for index, value in enumerate(values):
        if value in values[:index]:
            yield errors.duplicate(f"{path}.values[{index}]", value)
    yield from labels.validate_key(key, f"{path}.key")
    if key in seen:
        yield errors.duplicate(f"{path}.key", key)
    seen[key] = set(values)


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
