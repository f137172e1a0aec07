"""Estimates the maximum cost of function calls, and the maximum size of their results.

upstream: apiserver pkg/cel/library/cost.go, cel-go checker/cost.go, ext/sets.go
"""

import math
from collections.abc import Callable, Sequence

import msgspec

from kcm_cli.machinery.cel.types import Type
from kcm_cli.machinery.cel.values import Literal

MOST = (1 << 64) - 1
Size = tuple[int, int]
Path = tuple[str, ...]
Estimate = tuple[int, Size | None]
UNKNOWN: Size = (0, MOST)
_TRAVERSAL, _REGEX = 0.1, 0.25
_FORMAT_NAME = 128
_IP: Size = (4, 16)


class Operand(msgspec.Struct, frozen=True):
    """A target or argument. ``value``: the value of a literal."""

    path: Path
    type: Type
    size: Size | None
    value: Literal = None

    @property
    def known(self) -> Size:
        return self.size or UNKNOWN


def plus(*numbers: int) -> int:
    return min(sum(numbers), MOST)


def times(one: int, other: int) -> int:
    return min(one * other, MOST)


def scaled(number: int, factor: float = _TRAVERSAL) -> int:
    """The scaled number, rounded up in floating point as upstream does."""
    return min(math.ceil(float(number) * factor), MOST)


def estimate(
    name: str, target: Operand | None, args: Sequence[Operand], size_of: Callable[[Path], int | None]
) -> Estimate | None:
    """(cost of a call without its operands, size of its result); None for functions that cost 1."""
    if name in _COUNTED and target is not None:
        return _over_items(target, size_of), None
    if name == "join" and target is not None:
        return _join(target, args, size_of)
    if name in _WHOLE and args:
        return scaled(args[0].known[1], _WHOLE[name]), None
    for table, operand in ((_OF_TARGET, target), (_OF_ARGUMENT, args[0] if args else None)):
        if name in table and operand is not None:
            return table[name](operand, args)
    return None


def equality(left: Type, right: Type) -> int | None:
    """The cost of comparing values of the libraries' types; None for other types."""
    if left != right:
        return None
    return 1 if left.name in _OPAQUE else None


def _over_items(target: Operand, size_of: Callable[[Path], int | None]) -> int:
    if not target.type.params:
        return scaled(target.known[1])
    item = target.type.params[0]
    each = 1
    if item.name in ("string", "bytes"):
        each = plus(1, scaled(_item_size(target, size_of)))
    return times(target.known[1], each)


def _item_size(target: Operand, size_of: Callable[[Path], int | None]) -> int:
    most = size_of((*target.path, "@items")) if target.path else None
    return MOST if most is None else most


def _same_size(operand: Operand, args: Sequence[Operand]) -> Estimate:
    return scaled(operand.known[1]), operand.known


def _matches(target: Operand, args: Sequence[Operand]) -> Estimate:
    return times(scaled(plus(target.known[1], 1)), scaled(args[0].known[1], _REGEX)), None


def _found(target: Operand, args: Sequence[Operand]) -> Estimate:
    return _matches(target, args)[0], (0, target.known[1])


def _contains(target: Operand, args: Sequence[Operand]) -> Estimate:
    return times(scaled(target.known[1]), scaled(args[0].known[1])), None


def _affix(target: Operand, args: Sequence[Operand]) -> Estimate:
    return scaled(args[0].known[1]), None


def _split(target: Operand, args: Sequence[Operand]) -> Estimate:
    most = target.known[1]
    if len(args) > 1 and isinstance(args[1].value, int):
        most = args[1].value if args[1].value >= 0 else MOST
    return scaled(target.known[1], 2 * _TRAVERSAL), (0, most)


def _replace(target: Operand, args: Sequence[Operand]) -> Estimate:
    size, (old_least, old_most), (new_least, new_most) = target.known, args[0].known, args[1].known
    most = _replaced(size[1], old_least, new_most, shrinks=new_most <= old_least)
    least = _replaced(size[0], old_most, new_least, shrinks=old_most <= new_least)
    return scaled(size[1], 2 * _TRAVERSAL), (least, most)


def _replaced(size: int, old: int, new: int, *, shrinks: bool) -> int:
    if old == 0:
        return plus(times(plus(size, 1), new), size)
    return size if shrinks else times(math.ceil(float(size) / float(old)), new)


def _join(target: Operand, args: Sequence[Operand], size_of: Callable[[Path], int | None]) -> Estimate:
    count, between = target.known, args[0].known if args else (0, 0)
    item = _item_size(target, size_of) if target.type.params else 0
    size = (
        times(between[0], max(count[0] - 1, 0)),
        plus(times(count[1], item), times(between[1], max(count[1] - 1, 0))),
    )
    return scaled(size[1]), size


def _to_bytes(operand: Operand, args: Sequence[Operand]) -> Estimate | None:
    least, most = operand.known
    return (scaled(most), (least, times(most, 4))) if operand.type.name in ("string", "dyn") else (1, None)


def _to_string(operand: Operand, args: Sequence[Operand]) -> Estimate:
    least, most = operand.known
    if operand.type.name in ("bytes", "dyn"):
        return scaled(most), (least // 4, most)
    return 1, operand.size if operand.type.name == "string" else None


def _part_of_url(operand: Operand, args: Sequence[Operand]) -> Estimate:
    return 1, (0, operand.known[1])


def _contains_address(target: Operand, args: Sequence[Operand]) -> Estimate:
    text = args[0].known[1] if args[0].type.name in ("string", "dyn") else 0
    return plus(scaled(2 * _IP[1]), scaled(text)), None


def _contains_block(target: Operand, args: Sequence[Operand]) -> Estimate:
    text = args[0].known[1] if args[0].type.name in ("string", "dyn") else 0
    return plus(scaled(2 * _IP[1]), scaled(_IP[1]), 1, scaled(text)), None


def _sets(factor: int) -> Callable[[Operand, Sequence[Operand]], Estimate]:
    def run(operand: Operand, args: Sequence[Operand]) -> Estimate:
        return plus(times(times(operand.known[1], args[1].known[1]), factor), 1), None

    return run


def _fixed(cost: int) -> Callable[[Operand, Sequence[Operand]], Estimate]:
    return lambda operand, args: (cost, None)


_COUNTED = frozenset(["isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"])
_OPAQUE = frozenset(["net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver"])
_WHOLE = {name: _TRAVERSAL for name in ("cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver")}
_WHOLE |= {"ip.isCanonical": 2 * _TRAVERSAL}
_Table = dict[str, Callable[[Operand, Sequence[Operand]], Estimate | None]]
_OF_TARGET: _Table = {
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _same_size),
    **dict.fromkeys(("startsWith", "endsWith"), _affix),
    **dict.fromkeys(("find", "findAll"), _found),
    "matches": _matches,
    "contains": _contains,
    "split": _split,
    "replace": _replace,
    "format": lambda operand, args: (scaled(operand.known[1]), None),
    "check": _fixed(350_000),
    "validate": lambda operand, args: (scaled(scaled(args[0].known[1]), _FORMAT_NAME * _REGEX), None),
    **dict.fromkeys(("getScheme", "getHostname", "getHost", "getPort", "getQuery"), _part_of_url),
    "getEscapedPath": lambda operand, args: (1, (0, times(operand.known[1], 3))),
    "containsIP": _contains_address,
    "containsCIDR": _contains_block,
}
_OF_ARGUMENT: _Table = {
    **dict.fromkeys(("url", "jsonpatch.escapeKey"), _same_size),
    "bytes": _to_bytes,
    "string": _to_string,
    "strings.quote": lambda operand, args: (
        scaled(operand.known[1]),
        (operand.known[0] + 2, plus(times(operand.known[1], 2), 2)),
    ),
    "sets.contains": _sets(1),
    "sets.intersects": _sets(1),
    "sets.equivalent": _sets(2),
}
