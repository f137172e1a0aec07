"""StorageClass.

upstream: pkg/apis/storage/v1/defaults.go, pkg/apis/storage/validation,
pkg/registry/storage/storageclass/strategy.go, pkg/printers/internalversion/printers.go
"""

from collections import Counter
from datetime import datetime

from msgspec.structs import replace

from kcm_cli.sandbox.apiserver.defaulting import fill
from kcm_cli.sandbox.apiserver.kinds.storage.common import validate_driver, validate_parameters
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy, by
from kcm_cli.sandbox.apiserver.strategy.warnings import nodes
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, layout, name_of, of_field
from kcm_cli.sandbox.apiserver.trees import places
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels, rules


def _check_change(new: Tree, old: Tree) -> Errors:
    parameters = errors.sorted_map(new.get("parameters"))
    yield from errors.fixed("parameters", parameters, errors.sorted_map(old.get("parameters")))
    yield from errors.fixed("provisioner", new.get("provisioner", ""), old.get("provisioner", ""))
    for field in ("reclaimPolicy", "volumeBindingMode"):
        yield from errors.fixed(field, new.get(field), old.get(field))


def _topologies(terms: list[Tree], path: str) -> Errors:
    # upstream: pkg/apis/storage/validation/validation.go#validateAllowedTopologies (starts with empty entries)
    seen = Counter({frozenset[tuple[str, frozenset[str]]](): len(terms)})
    for index, term in enumerate(terms):
        place, labelled = f"{path}[{index}].matchLabelExpressions", term.get("matchLabelExpressions") or []
        yield from _EXPRESSIONS(labelled, place)
        last = {item.get("key", ""): frozenset(item.get("values") or ()) for item in labelled}
        values = frozenset(last.items())
        yield from (errors.duplicate(place, "") for _ in range(seen[values]))
        seen[values] += 1


_VALUES = rules.items(rules.anything, key="")
_EXPRESSIONS = rules.items(
    rules.fields(rules.required("values", _VALUES), rules.always("key", labels.validate_key)), key="key"
)
_CLASS = rules.fields_of(
    "storage.v1.StorageClass",
    rules.required("provisioner", validate_driver),
    rules.optional("parameters", validate_parameters),
    rules.maybe_one_of("reclaimPolicy", "Delete", "Retain", zero=True),
    rules.present("volumeBindingMode", rules.enum(*rules.choices("storage.v1.StorageClass", "volumeBindingMode"))),
    rules.optional("allowedTopologies", _topologies),
)


def _defaults(doc: Tree) -> None:
    fill.absent(doc, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def of_storage_class(new: Tree, old: Tree | None) -> list[str]:
    """Warnings about a StorageClass."""
    keys = places(new, "allowedTopologies[].matchLabelExpressions[].key")
    return [f"{path}: {nodes.DEPRECATED[key]}" for key, path in keys if key in nodes.DEPRECATED]


def _name(doc: Tree, now: datetime) -> str:
    annotations = doc["metadata"].get("annotations") or {}
    keys = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
    return name_of(doc) + (" (default)" if any(annotations.get(key) == "true" for key in keys) else "")


KIND = Kind(
    "storage.k8s.io",
    "storageclasses",
    defaults=_defaults,
    strategy=Strategy(
        returns_object_on_delete=True,
        check=by(_CLASS),
        check_change=_check_change,
        update_steps=("name", "rules", "metadata", "change"),
        warn=of_storage_class,
    ),
    table=layout(
        replace(NAME, cell=_name),
        Column("Provisioner", *of_field("StorageClass", "provisioner")),
        Column("ReclaimPolicy", *of_field("StorageClass", "reclaimPolicy", "Delete")),
        Column("VolumeBindingMode", *of_field("StorageClass", "volumeBindingMode", "Immediate")),
        Column("AllowVolumeExpansion", *of_field("StorageClass", "allowVolumeExpansion", False)),
        AGE,
    ),
)
