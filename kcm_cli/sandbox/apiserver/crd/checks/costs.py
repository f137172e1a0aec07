"""Limits of the estimated costs of rules: of each rule, and of all rules of a schema.

upstream: apiextensions-apiserver pkg/apis/apiextensions/validation/{validation,cel_validation}.go,
pkg/apiserver/schema/cel/compilation.go, apiserver pkg/cel/{common/schemas.go,limits.go}
"""

import msgspec
from msgspec.structs import replace

from kcm_cli.machinery.cel import Checked
from kcm_cli.machinery.cel.costs import MOST, SizeOf, most_cost
from kcm_cli.machinery.cel.declarations import escaped
from kcm_cli.machinery.cel.syntax import Node
from kcm_cli.sandbox.apiserver.crd.structural import NO_DEFAULT, Structural
from kcm_cli.sandbox.apiserver.types import FieldError
from kcm_cli.sandbox.apiserver.validation import errors

_RULE_LIMIT, _TOTAL_LIMIT = 10_000_000, 100_000_000
_REQUEST_BYTES = 3 * 1024 * 1024
_MOST_NAMED = 4
_LENGTHS = {"duration": 32, "date": 12, "date-time": 32}
"""The maximum sizes of formats in JSON; below the minimum ones."""
_LEAST_LENGTHS = {"duration": 3, "date": 12, "date-time": 21}
_LEAST_BYTES = {"string": 2, "boolean": 4, "integer": 1, "number": 1, "array": 2}
_ADVICE = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
    "declared)"
)


class Costs(msgspec.Struct):
    """The estimated costs of a schema's rules, with their paths."""

    known: list[tuple[str, int]] = msgspec.field(default_factory=list)

    def check(self, node: Node, checked: Checked, place: "Cost", path: str) -> list[FieldError]:
        """Add a rule. Returns the error if it exceeds the limit."""
        cost = min(most_cost(node, checked, sizes_of(place.schema, root=place.root)) * place.cardinality, MOST)
        return self._counted(cost, path, "rule")

    def check_message(self, node: Node, checked: Checked, place: "Cost", path: str) -> list[FieldError]:
        """``check`` for a messageExpression."""
        cost = most_cost(node, checked, sizes_of(place.schema, root=place.root))
        return self._counted(cost, path, "messageExpression")

    def _counted(self, cost: int, path: str, what: str) -> list[FieldError]:
        self.known.append((path, cost))
        if cost <= _RULE_LIMIT:
            return []
        return [errors.forbidden(path, _exceeds(f"estimated {what} cost", cost, _RULE_LIMIT))]

    def total(self, path: str) -> list[FieldError]:
        """The errors if all rules together exceed the limit."""
        total = min(sum(cost for _, cost in self.known), MOST)
        if total <= _TOTAL_LIMIT:
            return []
        dear = sorted((one for one in self.known if one[1] >= _TOTAL_LIMIT // 100), key=lambda one: -one[1])
        detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
        found = [errors.forbidden(where, detail) for where, _ in dear[:_MOST_NAMED]]
        what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        return [*found, errors.forbidden(path, _exceeds(what, total, _TOTAL_LIMIT))]


class Cost(msgspec.Struct, frozen=True):
    """The place of a rule. ``limit``: the maximum number of values of the schema in an object, None if unlimited."""

    schema: Structural
    root: bool
    limit: int | None

    @property
    def cardinality(self) -> int:
        return _REQUEST_BYTES // (least_bytes(self.schema) + 1) if self.limit is None else self.limit


def limit_below(raw: dict[str, object], limit: int | None) -> int | None:
    """The maximum number of values of a schema's part. ``limit``: that of the schema."""
    most: object = 1
    if raw.get("type") == "object" and raw.get("additionalProperties") is not None:
        most = raw.get("maxProperties")
    elif raw.get("type") == "array":
        most = raw.get("maxItems")
    return None if limit is None or not isinstance(most, int) else min(limit * max(most, 0), MOST)


def _exceeds(what: str, cost: int, limit: int) -> str:
    factor = cost / limit
    shown = "more than 100x" if factor > 100 else f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{what} exceeds budget by factor of {shown} {_ADVICE}"


def sizes_of(schema: Structural, *, root: bool) -> SizeOf:
    """The maximum sizes of values in a rule's expressions, by path.

    The size of an expression without a path, such as a function's result, is that of the schema, as in cel-go.
    """

    def size_of(path: tuple[str, ...]) -> int | None:
        found: Structural | None = _with_meta(schema) if root else schema
        for step in path[1:]:
            if found is None:
                return None
            if step == "@keys":
                return None if found.values is None else 0
            found = _below(found, step)
            found = _with_meta(found) if found is not None and found.embedded else found
        return None if found is None else _most(found)

    return size_of


_TEXT = _REQUEST_BYTES - 2
_STRING = Structural({}, "string")
_META = Structural({}, "object", properties={"name": _STRING, "generateName": _STRING})


def _with_meta(schema: Structural) -> Structural:
    """The schema with kind, apiVersion and metadata, unless it declares them.

    upstream: WithTypeAndObjectMeta of pkg/apiserver/schema/cel/model/schemas.go
    """
    fields = schema.properties
    metadata = fields.get("metadata")
    inner = metadata.properties if metadata is not None and metadata.type == "object" else {}
    texts = (fields.get("kind"), fields.get("apiVersion"), inner.get("name"), inner.get("generateName"))
    if all(one is not None and one.type == "string" for one in texts):
        return schema
    return replace(schema, properties={**fields, "kind": _STRING, "apiVersion": _STRING, "metadata": _META})


def _below(schema: Structural, step: str) -> Structural | None:
    if schema.int_or_string:
        return None
    if step == "@items":
        return schema.items
    if step == "@values":
        return schema.values
    plain = schema.properties.get(step)
    return plain or next((sub for name, sub in schema.properties.items() if escaped(name) == step), None)


def _most(schema: Structural) -> int:
    """The maximum number of items, entries or bytes of a value; 0 for other types."""
    raw = schema.raw
    if schema.int_or_string:
        return max(int(raw["maxLength"]), 0) * 4 if raw.get("maxLength") is not None else _TEXT
    if schema.type == "array" and schema.items is not None:
        return _limited(raw.get("maxItems"), least_bytes(schema.items) + 1)
    if schema.type == "object" and schema.values is not None:
        return _limited(raw.get("maxProperties"), least_bytes(schema.values) + 6)
    return _most_text(schema) if schema.type == "string" else 0


def _limited(limit: int | None, each: int) -> int:
    return max(limit, 0) if limit is not None else _TEXT // each


def _most_text(schema: Structural) -> int:
    raw, format_ = schema.raw, schema.raw.get("format") or ""
    if format_ in _LENGTHS:
        return _LENGTHS[format_]
    limit: int | None = raw.get("maxLength")
    if limit is not None:
        return max(limit, 0) * (1 if format_ == "byte" else 4)
    if raw.get("enum") and format_ != "byte":
        return max((len(one.encode()) for one in raw["enum"] if isinstance(one, str)), default=0)
    return _TEXT


def least_bytes(schema: Structural) -> int:
    """The minimum size of a value in JSON, in bytes."""
    if schema.int_or_string:
        return 1
    if schema.type == "string":
        return _LEAST_LENGTHS.get(schema.raw.get("format") or "", 2)
    if schema.type != "object" or schema.values is not None:
        return _LEAST_BYTES.get(schema.type, 2)
    size = 2
    for name in schema.raw.get("required") or ():
        sub = schema.properties.get(name)
        if sub is not None and sub.default is NO_DEFAULT:
            size += len(name) + least_bytes(sub) + 4
    return size
