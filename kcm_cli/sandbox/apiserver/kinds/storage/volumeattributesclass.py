"""VolumeAttributesClass.

upstream: pkg/apis/storage/validation,
pkg/registry/storage/volumeattributesclass/strategy.go, pkg/printers/internalversion/printers.go
"""

from kcm_cli.sandbox.apiserver.kinds.storage.common import validate_driver, validate_parameters
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy, by
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, layout, of_field
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, rules

_CLASS = rules.fields(
    rules.required("driverName", validate_driver),
    rules.optional("parameters", validate_parameters),
    rules.required("parameters", detail="must contain at least one key/value pair"),
)


def _check_change(new: Tree, old: Tree) -> Errors:
    for field in ("driverName", "parameters"):
        if new.get(field) != old.get(field):
            yield errors.forbidden(field, f"updates to {field} are forbidden.")


KIND = Kind(
    "storage.k8s.io",
    "volumeattributesclasses",
    strategy=Strategy(
        returns_object_on_delete=True,
        check=by(_CLASS),
        check_change=_check_change,
        update_steps=("metadata", "change", "name", "rules"),
    ),
    table=layout(NAME, Column("DriverName", *of_field("VolumeAttributesClass", "driverName")), AGE),
)
