"""ConfigMap.

Source: pkg/apis/core/validation, pkg/registry/core/configmap/strategy.go, pkg/printers/internalversion/printers.go.
"""

from datetime import datetime

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.kinds.core.common import SIZE_LIMIT, decoded_size, validate_locked
from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, Layout, created, name_of
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, metadata


def validate_config_map(doc: Tree) -> Errors:
    yield from metadata.validate_meta(doc["metadata"], True, metadata.subdomain)
    data, binary = doc.get("data") or {}, doc.get("binaryData") or {}
    size = 0
    for key, value in data.items():
        path = f"data[{key}]"
        yield from errors.invalid_each(path, key, names.config_map_key(key))
        if key in binary:
            yield errors.invalid(path, key, "duplicate of key present in binaryData")
        size += len(value.encode())
    for key, value in binary.items():
        yield from errors.invalid_each(f"binaryData[{key}]", key, names.config_map_key(key))
        size += decoded_size(value)
    if size > SIZE_LIMIT:
        yield errors.too_long("[]", SIZE_LIMIT)


def validate_config_map_update(new: Tree, old: Tree) -> Errors:
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])
    yield from validate_locked(new, old, ("data", "binaryData"))
    yield from validate_config_map(new)


def _cells(doc: Tree, now: datetime) -> list[object]:
    return [name_of(doc), len(doc.get("data") or ()) + len(doc.get("binaryData") or ()), created(doc, now)]


KIND = Kind(
    "",
    "configmaps",
    strategy=Strategy(
        check_create=validate_config_map,
        check_update=validate_config_map_update,
    ),
    table=Layout((NAME, Column("Data", "ConfigMap.data"), AGE), _cells),
)
