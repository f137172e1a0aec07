"""Rules that go through everything for everything are refused: their cost has no bound that a server could pay.

What is worked out here is the least that the original's estimate can be. A rule is refused if even that is more than a
hundred times the limit; the original refuses those with the same words, and some cheaper ones.

upstream: apiextensions-apiserver pkg/apis/apiextensions/validation/{validation,cel_validation}.go,
apiserver pkg/cel/common/schemas.go, cel-go checker/cost.go
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kcm_cli.machinery.cel.syntax import Call, Constant, Ident, Macro, Node, Select
from kcm_cli.sandbox.apiserver.crd.expressions import below_of
from kcm_cli.sandbox.apiserver.crd.structural import NO_DEFAULT, Structural
from kcm_cli.sandbox.apiserver.types import FieldError
from kcm_cli.sandbox.apiserver.validation import errors

_RULE_LIMIT, _TOTAL_LIMIT = 10_000_000, 100_000_000
_FACTOR = 100
_MOST = (1 << 64) - 1
"""Stands for no bound at all."""
_REQUEST_BYTES = 3 * 1024 * 1024
_MOST_NAMED = 4
_SIZES = {"string": 2, "boolean": 4, "integer": 1, "number": 1, "array": 2}
_ADVICE = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
    "declared)"
)
_UNBOUNDED = f"exceeds budget by factor of more than {_FACTOR}x {_ADVICE}"

Known = Mapping[str, Structural]
"""The schemas of variables."""


@dataclass(slots=True)
class Costs:
    """What the rules of a schema cost at least."""

    known: list[tuple[str, int]] = field(default_factory=list)

    def check(self, node: Node, schema: Structural, path: str, what: str) -> list[FieldError]:
        """Count a rule or a message's expression; the error if it is refused."""
        cost = least_cost(node, {"self": schema, "oldSelf": schema})
        self.known.append((path, cost))
        return [errors.forbidden(path, f"estimated {what} cost {_UNBOUNDED}")] if cost > _RULE_LIMIT * _FACTOR else []

    def total(self, path: str) -> list[FieldError]:
        """The error of all rules together."""
        if min(sum(cost for _, cost in self.known), _MOST) <= _TOTAL_LIMIT * _FACTOR:
            return []
        dear = sorted((one for one in self.known if one[1] >= _TOTAL_LIMIT // 100), key=lambda one: -one[1])
        detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
        found = [errors.forbidden(where, detail) for where, _ in dear[:_MOST_NAMED]]
        what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        return [*found, errors.forbidden(path, f"{what} {_UNBOUNDED}")]


def least_cost(node: Node, known: Known) -> int:
    """The least that an expression can be estimated to cost."""
    match node:
        case Constant():
            return 0
        case Ident():
            return 1
        case Macro():
            return _macro(node, known)
        case Call(function="_?_:_", args=(test, chosen, otherwise)):
            return least_cost(test, known) + max(least_cost(chosen, known), least_cost(otherwise, known))
        case Call(function="_+_", args=args) if any(_is_endless(arg, known) for arg in args):
            return _MOST
    return min(sum(least_cost(part, known) for part in below_of(node)), _MOST)


def _is_endless(node: Node, known: Known) -> bool:
    """Whether it is a text whose length nobody estimates: that of a number."""
    if not (isinstance(node, Call) and node.function == "string" and node.target is None and len(node.args) == 1):
        return False
    schema = _schema_of(node.args[0], known)
    return schema is not None and schema.type in ("integer", "number", "boolean")


def _macro(node: Macro, known: Known) -> int:
    source = _schema_of(node.range, known)
    inner = dict(known)
    for name in node.names:
        inner.pop(name, None)
    item = None if source is None else source.items
    if item is not None and len(node.names) == 1:
        inner[node.names[0]] = item
    each = max(sum(least_cost(arg, inner) for arg in node.args), 1)
    return min(least_cost(node.range, known) + _size(source) * each, _MOST)


def _schema_of(node: Node, known: Known) -> Structural | None:
    """The schema of a variable or a field of one."""
    if isinstance(node, Ident):
        return known.get(node.name.lstrip("."))
    if isinstance(node, Select) and not node.optional and not node.test:
        whole = _schema_of(node.operand, known)
        return None if whole is None else whole.properties.get(node.field)
    return None


def _size(schema: Structural | None) -> int:
    """How many items or entries a value may have; 0 where that is not known."""
    if schema is None:
        return 0
    if schema.type == "array" and schema.items is not None:
        limit, each = schema.raw.get("maxItems"), least_bytes(schema.items) + 1
    elif schema.type == "object" and schema.values is not None:
        limit, each = schema.raw.get("maxProperties"), least_bytes(schema.values) + 6
    else:
        return 0
    return int(limit) if limit is not None else (_REQUEST_BYTES - 2) // each


def least_bytes(schema: Structural) -> int:
    """The least that a value takes as JSON."""
    if schema.int_or_string:
        return 1
    if schema.type != "object" or schema.values is not None:
        return _SIZES.get(schema.type, 2)
    size = 2
    for name in schema.raw.get("required") or ():
        sub = schema.properties.get(name)
        if sub is not None and sub.default is NO_DEFAULT:
            size += len(name) + least_bytes(sub) + 4
    return size
