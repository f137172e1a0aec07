"""What the kinds of resource share."""

from collections.abc import Mapping

from kcm_cli.machinery import cel
from kcm_cli.machinery.cel.check import Fields
from kcm_cli.machinery.cel.parser import parse
from kcm_cli.machinery.cel.types import BOOL, DYN, STRING, map_of
from kcm_cli.sandbox.apiserver.defaulting import fill
from kcm_cli.sandbox.apiserver.trees import places
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, rules

_TEXT_MAX = 10 * 1024
_DEVICE = "kubernetes.DRADevice"
_OBJECTS: Mapping[str, Fields] = {
    _DEVICE: {
        "driver": STRING,
        "allowMultipleAllocations": BOOL,
        "attributes": map_of(STRING, map_of(STRING, DYN)),
        "capacity": map_of(STRING, map_of(STRING, cel.Type("kubernetes.Quantity"))),
    }
}
_ENVIRONMENT = cel.Environment({"device": cel.Type(_DEVICE)}, _OBJECTS.get)
_BIND = "cel.bind("


def _selector(expression: Tree, path: str) -> Errors:
    """Check a CEL expression about a device."""
    text, place = expression.get("expression", ""), f"{path}.expression"
    if len(text.encode()) > _TEXT_MAX:
        return [errors.too_long(place, _TEXT_MAX)]
    try:
        syntax = parse(text)
        result = BOOL if _BIND in text else cel.check(text, syntax, _ENVIRONMENT).result
    except cel.CelProblem as error:
        return [errors.invalid(place, text, f"compilation failed: {error}")]
    if result in (BOOL, DYN):
        return []
    return [errors.invalid(place, text, f"must evaluate to bool or the unknown type, not {result}")]


validate_selector = rules.fields(rules.present("cel", _selector))
"""A selector of devices."""


def at_most_items(limit: int, *checks: rules.Rule, key: str | None = None) -> rules.Rule:
    """A list of at most ``limit`` items that pass the checks. key: see ``rules.items``."""
    unique = rules.items(rules.anything, key=key, at_key=False)
    return rules.unless(rules.max_items(limit), rules.items(*checks), unique)


def claim_spec(spec: Tree) -> None:
    for way in ("exactly", "firstAvailable[]"):
        for request, _ in places(spec, f"devices.requests[].{way}"):
            fill.empty(request, allocationMode="ExactCount")
            if request["allocationMode"] == "ExactCount":
                fill.empty(request, count=1)
            tolerations(request)


def tolerations(holder: Tree) -> None:
    for toleration in holder.get("tolerations") or ():
        fill.empty(toleration, operator="Equal")
