"""Validation of the rules in a schema: syntax, fields, types and costs.

upstream: apiextensions-apiserver pkg/apiserver/schema/cel/compilation.go, apiserver pkg/cel/common/schemas.go
"""

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from kcm_cli.machinery import cel
from kcm_cli.machinery.cel.declarations import Declarations
from kcm_cli.machinery.cel.parser import parse
from kcm_cli.machinery.cel.syntax import Constant, Node
from kcm_cli.machinery.cel.types import (
    BOOL,
    STRING,
    optional_of,
)
from kcm_cli.sandbox.apiserver.crd.checks.costs import Cost, Costs
from kcm_cli.sandbox.apiserver.crd.checks.spec import go_rule, shown_go
from kcm_cli.sandbox.apiserver.crd.expressions import uses
from kcm_cli.sandbox.apiserver.crd.findings import invalid
from kcm_cli.sandbox.apiserver.crd.structural import Structural, structural
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors

_SELF = "selfType"
_UNUSED = "may not be set if oldSelf is not used in rule"
_UNTYPED = (
    "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert "
    "structural schema to CEL declarations"
)


def check_rules(
    schema: Tree, path: str, loose: str, costs: Costs, limit: int | None, *, root: bool
) -> Iterator[FieldError]:
    """The errors of the rules of a schema, which are at ``path``. root: the schema is a resource's. loose: see
    ``schema._Place``. limit: see ``costs.Cost``.
    """
    own = structural(schema)
    environment = _environment(schema, root=root)
    if environment is None:
        yield errors.internal(path, _UNTYPED)
        return
    cost = Cost(own, root, limit)
    for index, rule in enumerate(schema["x-kubernetes-validations"]):
        yield from _check(rule, _Place(cost, environment, f"{path}[{index}]", loose, costs))


def problem_of(rule: Tree, schema: Structural) -> str:
    """The compile error of a rule of a part of a schema, otherwise empty."""
    known = _environment(schema.raw, root=False)
    return "" if known is None else _checked_rule(rule, known)[2]


class _Place(msgspec.Struct, frozen=True):
    """The place of a rule, and the variables that it may use (``known``)."""

    cost: Cost
    known: cel.Environment
    path: str
    loose: str
    costs: Costs


def _check(rule: Tree, place: _Place) -> Iterator[FieldError]:
    known, path = place.known, place.path
    text, message = rule["rule"], rule.get("messageExpression") or ""
    optional = bool(rule.get("optionalOldSelf"))
    value = f"Invalid value: {shown_go(go_rule(rule))}"
    node, checked, problem = _checked_rule(rule, known)
    if checked is None:
        yield FieldError("FieldValueInvalid", f"{path}.rule", f"{value}: {problem}")
        if rule.get("optionalOldSelf") is not None:
            yield invalid(f"{path}.optionalOldSelf", optional, _UNUSED)
        return
    yield from place.costs.check(node, checked, place.cost, f"{path}.rule")
    if message:
        yield from _check_message(message, replace(place, known=_with_optional(rule, known)), value)
    if uses(node, "oldSelf"):
        if place.loose:
            detail = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {place.loose}"
            yield invalid(f"{path}.rule", text, detail)
    elif rule.get("optionalOldSelf") is not None:
        yield invalid(f"{path}.optionalOldSelf", optional, _UNUSED)


def _with_optional(rule: Tree, known: cel.Environment) -> cel.Environment:
    if not rule.get("optionalOldSelf"):
        return known
    return known.with_variables({"oldSelf": optional_of(known.variables["self"])})


def _checked_rule(rule: Tree, known: cel.Environment) -> tuple[Node, cel.Checked | None, str]:
    known = _with_optional(rule, known)
    return _checked(rule["rule"], known, BOOL, "", "cel expression must evaluate to a bool")


def _check_message(text: str, place: _Place, value: str) -> Iterator[FieldError]:
    path, otherwise = f"{place.path}.messageExpression", "messageExpression must evaluate to a string"
    node, checked, problem = _checked(text, place.known, STRING, "messageExpression ", otherwise)
    if checked is None:
        yield FieldError("FieldValueInvalid", path, f"{value}: {problem}")
    else:
        yield from place.costs.check_message(node, checked, place.cost, path)


def _checked(
    text: str, known: cel.Environment, wanted: cel.Type, what: str, otherwise: str
) -> tuple[Node, cel.Checked | None, str]:
    """The tree and its types, or the error."""
    try:
        node = parse(text)
        found = cel.check(text, node, known)
    except cel.CelProblem as error:
        return _NOTHING, None, f"{what}compilation failed: {error}"
    if found.result != wanted:
        return node, None, otherwise
    failed = cel.failed_conversion(node)
    return (node, None, f"{what or 'program '}instantiation failed: {failed}") if failed else (node, found, "")


_NOTHING = Constant(0, None)


def _environment(schema: Tree, *, root: bool) -> cel.Environment | None:
    """The variables of a schema's rules; None if the schema has no type."""
    declarations = Declarations()
    own = declarations.declare(schema, _SELF, root=root)
    return None if own is None else cel.Environment({"self": own, "oldSelf": own}, declarations.fields)
