"""ControllerRevision.

Source: pkg/apis/apps/validation,
pkg/registry/apps/controllerrevision/strategy.go, pkg/printers/internalversion/printers.go.
"""

from datetime import datetime

from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, Layout, created
from kcm_cli.sandbox.apiserver.tables.templates import NONE
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, metadata


def validate_revision(doc: Tree) -> Errors:
    yield from _revision(doc)
    data = doc.get("data")
    if data is None:
        yield errors.required("data", "data is mandatory")
    elif not isinstance(data, dict):
        yield errors.required("data", "data must be a valid JSON object")


def _revision(doc: Tree) -> Errors:
    yield from metadata.validate_meta(doc["metadata"], True, metadata.subdomain)
    revision = doc.get("revision", 0)
    if not revision >= 0:
        yield errors.invalid("revision", revision, errors.NEGATIVE)


def validate_revision_update(new: Tree, old: Tree) -> Errors:
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])
    yield from _revision(new)
    yield from errors.fixed("data", new.get("data"), old.get("data"))


def _cells(doc: Tree, now: datetime) -> list[object]:
    owner = next((one for one in doc["metadata"].get("ownerReferences") or () if one.get("controller")), None)
    name = NONE
    if owner is not None:
        group, slash, _ = owner["apiVersion"].rpartition("/")
        kind = f"{owner['kind']}.{group}" if slash else owner["kind"]
        name = f"{kind.lower()}/{owner['name']}"
    return [doc["metadata"]["name"], name, doc.get("revision", 0), created(doc, now)]


KIND = Kind(
    "apps",
    "controllerrevisions",
    strategy=Strategy(
        check_create=validate_revision,
        check_update=validate_revision_update,
    ),
    table=Layout(
        (
            NAME,
            Column("Controller", "Controller of the object"),
            Column("Revision", "ControllerRevision.revision"),
            AGE,
        ),
        _cells,
    ),
)
