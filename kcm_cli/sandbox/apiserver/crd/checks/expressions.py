"""Whether the rules of a schema can work: their syntax, the fields that they name, the types of what they give.

upstream: apiextensions-apiserver pkg/apiserver/schema/cel/compilation.go, apiserver pkg/cel/common/schemas.go
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kcm_cli.machinery import cel
from kcm_cli.machinery.cel.parser import parse
from kcm_cli.machinery.cel.syntax import Constant, Node
from kcm_cli.machinery.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    list_of,
    map_of,
    optional_of,
)
from kcm_cli.sandbox.apiserver.crd.checks.costs import Cost, Costs
from kcm_cli.sandbox.apiserver.crd.checks.spec import go_rule, shown_go
from kcm_cli.sandbox.apiserver.crd.expressions import escaped, uses
from kcm_cli.sandbox.apiserver.crd.findings import invalid
from kcm_cli.sandbox.apiserver.crd.structural import Structural, structural
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors

_SELF = "selfType"
_UNTYPED = (
    "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert "
    "structural schema to CEL declarations"
)
_FORMATS = {"byte": BYTES, "duration": DURATION, "date": TIMESTAMP, "date-time": TIMESTAMP}
_PLAIN = {"boolean": BOOL, "number": DOUBLE, "integer": INT}
_META = {"apiVersion": STRING, "kind": STRING}


def check_rules(
    schema: Tree, path: str, loose: str, costs: Costs, limit: int | None, *, root: bool
) -> Iterator[FieldError]:
    """What is wrong with the rules at a schema (``path``: where they are). ``root``: of a resource; ``loose``: the part
    of the schema around it that old and new objects cannot be matched in; ``limit``: see ``costs.Cost``.
    """
    own = structural(schema)
    environment = _Types().environment(own, root=root)
    if environment is None:
        yield errors.internal(path, _UNTYPED)
        return
    cost = Cost(own, root, limit)
    for index, rule in enumerate(schema["x-kubernetes-validations"]):
        yield from _check(rule, _Place(cost, environment, f"{path}[{index}]", loose, costs))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a rule stands, and what it may refer to."""

    cost: Cost
    known: cel.Environment
    path: str
    loose: str
    costs: Costs


def _check(rule: Tree, place: _Place) -> Iterator[FieldError]:
    known, path = place.known, place.path
    text, message = rule["rule"], rule.get("messageExpression") or ""
    optional = bool(rule.get("optionalOldSelf"))
    if optional:
        own = known.variables["self"]
        known = known.with_variables({"oldSelf": optional_of(own)})
    value = f"Invalid value: {shown_go(go_rule(rule))}"
    node, checked, problem = _checked(text, known, BOOL, "", "cel expression must evaluate to a bool")
    if checked is None:
        yield FieldError("FieldValueInvalid", f"{path}.rule", f"{value}: {problem}")
        return
    yield from place.costs.check(node, checked, place.cost, f"{path}.rule")
    if message:
        yield from _check_message(message, replace(place, known=known), value)
    if uses(node, "oldSelf"):
        if place.loose:
            detail = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {place.loose}"
            yield invalid(f"{path}.rule", text, detail)
    elif rule.get("optionalOldSelf") is not None:
        yield invalid(f"{path}.optionalOldSelf", optional, "may not be set if oldSelf is not used in rule")


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
    """The tree and its types, or what is wrong with it."""
    try:
        node = parse(text)
        found = cel.check(text, node, known)
    except cel.CelProblem as error:
        return _NOTHING, None, f"{what}compilation failed: {error}"
    return (node, found, "") if found.result == wanted else (node, None, otherwise)


_NOTHING = Constant(0, None)


class _Types:
    """The types of one schema; objects have the names of their places."""

    def __init__(self) -> None:
        self._objects: dict[str, dict[str, cel.Type]] = {}

    def environment(self, schema: Structural, *, root: bool) -> cel.Environment | None:
        """What a rule at a schema may refer to; None where it has no type."""
        own = self._type(schema, _SELF, root=root)
        return None if own is None else cel.Environment({"self": own, "oldSelf": own}, self._objects.get)

    def _type(self, schema: Structural, name: str, *, root: bool = False) -> cel.Type | None:
        """None for what rules cannot see."""
        if schema.int_or_string:
            return DYN
        if schema.type == "array":
            if schema.items is None:
                return None
            items = self._type(schema.items, f"{name}.@idx", root=schema.items.embedded)
            return list_of(items) if items is not None else None
        if schema.type == "object":
            return self._object(schema, name, root=root)
        if schema.type == "string":
            return _FORMATS.get(schema.raw.get("format") or "", STRING)
        return _PLAIN.get(schema.type)

    def _object(self, schema: Structural, name: str, *, root: bool) -> cel.Type | None:
        if schema.values is not None:
            values = self._type(schema.values, f"{name}.@elem", root=schema.values.embedded)
            return map_of(STRING, values) if values is not None else None
        fields: dict[str, cel.Type] = {}
        for field, sub in schema.properties.items():
            type_, shown = self._type(sub, f"{name}.{field}", root=sub.embedded), escaped(field)
            if type_ is not None and shown:
                fields[shown] = type_
        if root:
            meta = f"{name}.metadata"
            self._objects[meta] = {"name": STRING, "generateName": STRING}
            fields |= {**_META, "metadata": cel.Type(meta)}
        self._objects[name] = fields
        return cel.Type(name)
