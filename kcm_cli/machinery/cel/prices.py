"""The cost of calls that depends on their values.

upstream: cel-go interpreter/runtimecost.go#costCall, ext/{lists,sets}.go, apiserver pkg/cel/library/cost.go#CallCost
"""

from collections.abc import Callable, Mapping, Sequence
from math import ceil

from kcm_cli.machinery.cel.kubernetes import FormatValue
from kcm_cli.machinery.cel.networks import CidrValue
from kcm_cli.machinery.cel.values import Optional, Value

Price = Callable[[Sequence[Value], Value], int]
"""From the values (the target first) and the result."""

_TRAVERSAL, _REGEX = 0.1, 0.25
_NEW_LIST = 11
_FORMAT_PATTERNS = {
    "qualifiedName": 60,
    "dns1123Subdomain": 60,
    "dns1123SubdomainPrefix": 60,
    "labelValue": 40,
    "uri": 1104,
    "uuid": 72,
    "byte": 84,
    "date": 72,
    "datetime": 72,
}
_FORMAT_PATTERN = 30


def size(value: Value) -> int:
    """The size of a value; 1 for values without a size."""
    if isinstance(value, (str, bytes, list, tuple, Mapping)):
        return len(value)
    if isinstance(value, CidrValue):
        return (value.prefix + 7) // 8
    if isinstance(value, Optional) and value.present:
        return size(value.value)
    return 1


def _part(number: float, factor: float = _TRAVERSAL) -> int:
    return ceil(number * factor)


def _first(factor: float = _TRAVERSAL) -> Price:
    return lambda values, result: _part(size(values[0]), factor)


def _compared(values: Sequence[Value], result: Value) -> int:
    one, other = values
    kind = type(one)
    if kind is str and type(other) is str:
        return ceil(min(len(one), len(other)) * _TRAVERSAL)  # type: ignore[arg-type]  # both are texts
    if kind in (int, bool, float):
        return 1
    return _part(min(size(one), size(other)))


def _ordered(values: Sequence[Value], result: Value) -> int:
    return _compared(values, result) if isinstance(values[0], (str, bytes)) else 1


def _added(values: Sequence[Value], result: Value) -> int:
    return _part(size(values[0]) + size(values[1])) if isinstance(values[0], (str, bytes)) else 1


def _contained(values: Sequence[Value], result: Value) -> int:
    return 1 if isinstance(values[1], Mapping) else size(values[1])


def _matched(values: Sequence[Value], result: Value) -> int:
    return _part(1 + size(values[0])) * _part(size(values[1]), _REGEX)


def _searched(values: Sequence[Value], result: Value) -> int:
    return _part(size(values[0])) * _part(size(values[1]))


def _traversed(values: Sequence[Value], result: Value) -> int:
    return _walk(values[0])


def _walk(value: Value) -> int:
    if isinstance(value, (str, bytes)):
        return int(len(value) * _TRAVERSAL)
    if isinstance(value, (list, tuple)):
        return sum(map(_walk, value))
    if isinstance(value, Mapping):
        return sum(_walk(key) + _walk(item) for key, item in value.items())
    return 1


def _converted(values: Sequence[Value], result: Value) -> int:
    """The cost of a conversion between strings and bytes; 1 for other conversions."""
    return _part(size(values[0])) if isinstance(values[0], (str, bytes)) and type(values[0]) is not type(result) else 1


def _parsed(values: Sequence[Value], result: Value) -> int:
    return _part(size(values[0])) if isinstance(values[0], str) else 1


def _has_address(values: Sequence[Value], result: Value) -> int:
    return _part(2 * size(values[0])) + (_part(size(values[1])) if isinstance(values[1], str) else 0)


def _has_block(values: Sequence[Value], result: Value) -> int:
    return _has_address(values, result) + _part(size(values[0])) + 1


def _validated(values: Sequence[Value], result: Value) -> int:
    format_, text = values
    pattern = _FORMAT_PATTERNS.get(format_.name, _FORMAT_PATTERN) if isinstance(format_, FormatValue) else 0
    return _part(1 + size(text)) * _part(pattern, _REGEX)


def _sets(factor: int) -> Price:
    return lambda values, result: 1 + factor * size(values[0]) * size(values[1])


def _made(values: Sequence[Value], result: Value) -> int:
    return _NEW_LIST + size(result)


def _flattened(values: Sequence[Value], result: Value) -> int:
    depth = values[1] if len(values) == 2 and isinstance(values[1], int) else 1
    return _NEW_LIST + depth * size(values[0])


def sorting(items: Sequence[Value]) -> int:
    """The cost of sorting values or finding duplicates."""
    texts = bool(items) and isinstance(items[0], (str, bytes))
    return _NEW_LIST + int(len(items) ** 2 * (2.1 if texts else 2.0))


def _sorted(values: Sequence[Value], result: Value) -> int:
    return sorting(values[0]) if isinstance(values[0], (list, tuple)) else 1


PRICES: Mapping[str, Price] = {
    **dict.fromkeys(("_==_", "_!=_"), _compared),
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _ordered),
    "_+_": _added,
    "@in": _contained,
    **dict.fromkeys(("matches", "find", "findAll"), _matched),
    "contains": _searched,
    **dict.fromkeys(("startsWith", "endsWith", "lowerAscii", "upperAscii", "substring", "trim"), _first()),
    **dict.fromkeys(("url", "jsonpatch.escapeKey", "strings.quote", "format"), _first()),
    **dict.fromkeys(("replace", "split"), _first(2 * _TRAVERSAL)),
    "join": lambda values, result: _part(size(result), 2 * _TRAVERSAL),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _traversed),
    **dict.fromkeys(("string", "bytes"), _converted),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"), _parsed),
    "ip.isCanonical": _first(2 * _TRAVERSAL),
    "containsIP": _has_address,
    "containsCIDR": _has_block,
    "validate": _validated,
    "check": lambda values, result: 350_000,
    **dict.fromkeys(("sets.contains", "sets.intersects"), _sets(1)),
    "sets.equivalent": _sets(2),
    **dict.fromkeys(("slice", "reverse", "lists.range"), _made),
    "flatten": _flattened,
    **dict.fromkeys(("sort", "distinct"), _sorted),
}
