"""What the kinds of flowcontrol share."""

from collections.abc import Mapping
from functools import cache

from kcm_cli.sandbox.apiserver.security.bootstrap import fixed_objects
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.trees import keep
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, go_print, rules

PRECEDENCE_MAX, QUEUES_MAX, ENTROPY_MAX = 10_000, 10_000_000, 60


def validate_fixed(name: str, kind: str, spec: Tree) -> Errors:
    """Check the specs of objects that the server requires to be unchanged."""
    wanted = _mandatory().get((kind, name))
    if wanted is None:
        return []
    but = " except the 'spec.exempt' field" if (kind, name) == ("PriorityLevelConfiguration", "exempt") else ""
    type_ = f"flowcontrol.{kind}Spec"
    if go_print.internal(type_, {**spec, "exempt": wanted["exempt"]} if but else spec) == go_print.internal(
        type_, wanted
    ):
        return []
    return [errors.invalid("spec", go_print.internal(type_, spec), f"spec of '{name}'{but} must equal the fixed value")]


@cache
def _mandatory() -> Mapping[tuple[str, str], Tree]:
    objects: list[Tree] = fixed_objects()
    wanted = [one for one in objects if one["metadata"]["name"] in ("exempt", "catch-all")]
    return {(one["kind"], one["metadata"]["name"]): one["spec"] for one in wanted}


validate_status = rules.fields(rules.each("conditions", key="type", then=rules.fields(rules.required("type"))))


def _whole_metadata_status(new: Tree, old: Tree) -> None:
    """An update of the status that keeps all metadata except managed fields."""
    meta = dict(old["metadata"])
    for field in ("managedFields", "resourceVersion"):
        keep(meta, new["metadata"], field)
    new["metadata"] = meta


STRATEGY = Strategy(
    new_status={},
    generation=True,
    status_keeps_metadata=True,
    on_status=_whole_metadata_status,
    update_steps=("name", "rules"),
    check_status=lambda new, old: validate_status(new.get("status") or {}, "status"),
)
