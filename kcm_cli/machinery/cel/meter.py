"""The cost of running an expression, and its limit.

A sequence without branches is charged as a whole at its start (``fixed``), work that depends on values with each call
(``prices``). Not counted: the last check of ``all`` and ``exists`` that ends them early.

upstream: cel-go interpreter/runtimecost.go, apiserver pkg/cel/environment/base.go
"""

from kcm_cli.machinery.cel.functions import FUNCTIONS
from kcm_cli.machinery.cel.prices import PRICES, Price
from kcm_cli.machinery.cel.syntax import (
    COMPARED,
    Call,
    Constant,
    Ident,
    ListNode,
    Macro,
    MapNode,
    Node,
    Select,
    StructNode,
    qualified_name,
)
from kcm_cli.machinery.cel.values import CelError

CALL_LIMIT = 1_000_000
"""The most that one run of an expression may cost."""

_LIST, _MAP, _STRUCT = 10, 30, 40
_ADD_ITEM = 2 + _LIST
"""The collection so far, the item's list of its own, and their sum."""
_SHORT = 10
_INDEXES = ("_[_]", "_[?_]")
_BRANCHING = ("_&&_", "_||_", "_?_:_")
_CONVERSIONS = frozenset(["bool", "bytes", "double", "duration", "int", "string", "timestamp", "uint"])


class CelCancelled(CelError):
    """The expression exceeded its cost limit."""


class OverLimit(Exception):
    """The limit is exceeded. Not a CelError, so that no operator ignores it."""


class Meter:
    """The cost of the running expression so far."""

    __slots__ = ("cost",)

    def __init__(self) -> None:
        self.cost = 0

    def check(self) -> None:
        """Raises OverLimit if the limit is exceeded."""
        if self.cost > CALL_LIMIT:
            raise OverLimit


def fixed(node: Node, *, bare: bool = False) -> int:
    """The cost of a node without its branches and steps.

    bare: the node is a branch of a conditional or an index, where a plain name is free.
    """
    match node:
        case Constant():
            return 0
        case Ident():
            return 0 if bare else 1
        case Select():
            return _attribute(node.operand, bare=bare and not node.test) + (0 if node.test else 1)
        case Call():
            return _call(node, bare=bare)
        case ListNode():
            return 0 if is_constant(node) else _LIST + sum(map(fixed, node.elements))
        case MapNode():
            if is_constant(node):
                return 0
            return _MAP + sum(fixed(key) + fixed(value) for key, value, _ in node.entries)
        case StructNode():
            return _STRUCT + sum(fixed(value) for _, value, _ in node.fields)
        case Macro():
            return fixed(node.range) + _around(node.kind)


def _attribute(node: Node, *, bare: bool) -> int:
    """The cost of the operand of a selection or index."""
    if isinstance(node, (Ident, Select)) or (isinstance(node, Call) and node.function in (*_INDEXES, "_?_:_")):
        return fixed(node, bare=bare)
    return fixed(node) + (0 if bare else 1)


def _call(node: Call, *, bare: bool) -> int:
    args = node.args
    if node.function in _INDEXES:
        return _attribute(args[0], bare=bare) + fixed(args[1], bare=True) + 1
    if node.function in _BRANCHING:
        return fixed(args[0])
    if node.function in ("or", "orValue") and node.target is not None:
        return fixed(node.target)
    name, target = called(node)
    inside = sum(map(fixed, args)) + (fixed(target) if target is not None else 0)
    return inside if price_of(node, name) is not None or _is_folded(node) else inside + 1


def called(node: Call) -> tuple[str, Node | None]:
    """(function, target) of a call. ``sets.contains`` is one function without a target."""
    prefix = qualified_name(node.target) if node.target is not None else ""
    qualified = f"{prefix}.{node.function}"
    return (qualified, None) if prefix and qualified in FUNCTIONS else (node.function, node.target)


def price_of(node: Call, name: str) -> Price | None:
    """The price of a call by its values; None if its cost is constant."""
    if _is_folded(node) or (name in COMPARED and any(map(_is_short, node.args))):
        return None
    return PRICES.get(name)


def _is_short(node: Node) -> bool:
    if not isinstance(node, Constant):
        return False
    return not isinstance(node.value, (str, bytes)) or 0 < len(node.value) <= _SHORT


def _is_folded(node: Call) -> bool:
    """Whether the result is a constant that is computed at compile time."""
    if node.function == "@in":
        return isinstance(node.args[1], ListNode) and is_constant(node.args[1])
    folded = node.target is None and node.function in _CONVERSIONS and len(node.args) == 1
    return folded and isinstance(node.args[0], Constant)


def is_constant(node: Node) -> bool:
    """Whether a node consists of literals only."""
    match node:
        case Constant():
            return True
        case ListNode():
            return not node.optional and all(map(is_constant, node.elements))
        case MapNode():
            return all(not optional and is_constant(k) and is_constant(v) for k, v, optional in node.entries)
    return False


def _around(kind: str) -> int:
    """The cost of a macro without its steps."""
    if kind == "exists_one":
        return 2
    return 3 if kind == "sortBy" else 1


def steps(node: Macro) -> tuple[int, int]:
    """(cost of each step of a macro, additional cost if its test is true)."""
    body, tested = fixed(node.args[-1]), len(node.args) == 2
    own = _own(node.kind)
    if node.kind == "exists_one":
        return body, 2
    if node.kind == "filter":
        return body, _ADD_ITEM + 1
    return (fixed(node.args[0]), own + body) if tested else (own + body, 0)


def _own(kind: str) -> int:
    """The cost of collecting the result of one step."""
    return {"all": 3, "exists": 4, "transformMap": 3, "transformMapEntry": 2}.get(kind, _ADD_ITEM)
