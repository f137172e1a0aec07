"""ConfigMap.

upstream: pkg/apis/core/validation, pkg/registry/core/configmap/strategy.go, pkg/printers/internalversion/printers.go
"""

from datetime import datetime

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.kinds.core.common import SIZE_LIMIT, decoded_size, validate_keys, validate_locked
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, layout
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors


def _check(doc: Tree, old: Tree | None) -> Errors:
    data, binary = doc.get("data") or {}, doc.get("binaryData") or {}
    for key in data:
        yield from errors.invalid_each(f"data[{key}]", key, names.config_map_key(key))
        if key in binary:
            yield errors.invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    yield from validate_keys(binary, "binaryData")
    size = sum(len(value.encode()) for value in data.values()) + sum(decoded_size(value) for value in binary.values())
    if size > SIZE_LIMIT:
        yield errors.too_long("[]", SIZE_LIMIT)


def _size(doc: Tree, now: datetime) -> int:
    return len(doc.get("data") or ()) + len(doc.get("binaryData") or ())


KIND = Kind(
    "",
    "configmaps",
    strategy=Strategy(
        check=_check,
        check_change=lambda new, old: validate_locked(new, old, "data", "binaryData"),
        update_steps=("metadata", "change", "name", "rules"),
    ),
    table=layout(NAME, Column("Data", "ConfigMap.data", _size), AGE),
)
