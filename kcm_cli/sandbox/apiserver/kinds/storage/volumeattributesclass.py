"""VolumeAttributesClass.

Source: pkg/apis/storage/validation,
pkg/registry/storage/volumeattributesclass/strategy.go, pkg/printers/internalversion/printers.go.
"""

from datetime import datetime

from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.kinds.storage.common import validate_driver, validate_parameters
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, Layout, created, name_of
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, metadata


def validate_attributes_class(doc: Tree) -> Errors:
    yield from metadata.validate_meta(doc["metadata"], False, metadata.subdomain)
    yield from validate_driver(doc.get("driverName", ""), "driverName")
    parameters = doc.get("parameters") or {}
    yield from validate_parameters(parameters, "parameters")
    if not parameters:
        yield errors.required("parameters", "must contain at least one key/value pair")


def validate_attributes_class_update(new: Tree, old: Tree) -> Errors:
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])
    for field in ("driverName", "parameters"):
        if new.get(field) != old.get(field):
            yield errors.forbidden(field, f"updates to {field} are forbidden.")
    yield from validate_attributes_class(new)


def _cells(doc: Tree, now: datetime) -> list[object]:
    return [name_of(doc), doc.get("driverName", ""), created(doc, now)]


KIND = Kind(
    "storage.k8s.io",
    "volumeattributesclasses",
    strategy=Strategy(
        namespaced=False,
        returns_object_on_delete=True,
        check_create=validate_attributes_class,
        check_update=validate_attributes_class_update,
    ),
    table=Layout((NAME, Column("DriverName", "VolumeAttributesClass.driverName"), AGE), _cells),
)
