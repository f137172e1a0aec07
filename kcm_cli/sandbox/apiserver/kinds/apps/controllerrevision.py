"""ControllerRevision.

upstream: pkg/apis/apps/validation,
pkg/registry/apps/controllerrevision/strategy.go, pkg/printers/internalversion/printers.go
"""

from datetime import datetime

from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, layout, of_field
from kcm_cli.sandbox.apiserver.tables.templates import NONE
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, rules

_REVISION = rules.fields(rules.optional("revision", rules.COUNT))


def _check(doc: Tree, old: Tree | None) -> Errors:
    yield from _REVISION(doc, "")
    data = doc.get("data")
    if old is None and data is None:
        yield errors.required("data", "data is mandatory")
    elif old is None and not isinstance(data, dict):
        yield errors.required("data", "data must be a valid JSON object")


def _controller(doc: Tree, now: datetime) -> str:
    owner = next((one for one in doc["metadata"].get("ownerReferences") or () if one.get("controller")), None)
    if owner is None:
        return NONE
    group, slash, _ = owner["apiVersion"].rpartition("/")
    kind = f"{owner['kind']}.{group}" if slash else owner["kind"]
    return f"{kind.lower()}/{owner['name']}"


KIND = Kind(
    "apps",
    "controllerrevisions",
    strategy=Strategy(
        check=_check,
        check_change=lambda new, old: errors.fixed("data", new.get("data"), old.get("data")),
        update_steps=("metadata", "name", "rules", "change"),
    ),
    table=layout(
        NAME,
        Column("Controller", "Controller of the object", _controller),
        Column("Revision", *of_field("ControllerRevision", "revision", 0)),
        AGE,
    ),
)
