"""The nodes of an expression. ``offset``: the position in the text, for errors."""

from collections.abc import Iterator

import msgspec

from kcm_cli.machinery.cel.values import Literal

COMPARED = ("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_")
"""The operators that compare."""


class Constant(msgspec.Struct, frozen=True):
    """A literal."""

    offset: int
    value: Literal


class Ident(msgspec.Struct, frozen=True):
    """A name, with a dot before it if it was written with one."""

    offset: int
    name: str


class Select(msgspec.Struct, frozen=True):
    """``operand.field``; ``optional``: ``operand.?field``; ``test``: within ``has()``."""

    offset: int
    operand: "Node"
    field: str
    optional: bool = False
    test: bool = False


class Call(msgspec.Struct, frozen=True):
    """A call of a function or operator, with or without a target. Operators have the names that errors show."""

    offset: int
    function: str
    target: "Node | None"
    args: "tuple[Node, ...]"


class ListNode(msgspec.Struct, frozen=True):
    """``[a, ?b]``; ``optional``: the indexes of optional elements."""

    offset: int
    elements: "tuple[Node, ...]"
    optional: frozenset[int] = frozenset()


class MapNode(msgspec.Struct, frozen=True):
    """``{k: v, ?k: v}``: key, value, whether optional."""

    offset: int
    entries: "tuple[tuple[Node, Node, bool], ...]"


class StructNode(msgspec.Struct, frozen=True):
    """``Type{field: value, ?field: value}``; ``colons``: the offsets of the colons."""

    offset: int
    type_name: str
    fields: "tuple[tuple[str, Node, bool], ...]"
    colons: tuple[int, ...] = ()


class Macro(msgspec.Struct, frozen=True):
    """A comprehension: ``range.kind(names..., args...)``. See ``interpret`` for the kinds."""

    offset: int
    kind: str
    range: "Node"
    names: tuple[str, ...]
    args: "tuple[Node, ...]"


Node = Constant | Ident | Select | Call | ListNode | MapNode | StructNode | Macro


def nodes_of(node: Node) -> Iterator[Node]:
    """A node and everything below it."""
    yield node
    for below in children_of(node):
        yield from nodes_of(below)


def children_of(node: Node) -> Iterator[Node]:
    """The direct children of a node."""
    match node:
        case Select(operand=operand):
            yield operand
        case Call(target=target, args=args):
            if target is not None:
                yield target
            yield from args
        case ListNode(elements=elements):
            yield from elements
        case MapNode(entries=entries):
            for key, value, _ in entries:
                yield from (key, value)
        case StructNode(fields=fields):
            for _, value, _ in fields:
                yield value
        case Macro(range=source, args=args):
            yield source
            yield from args


def qualified_name(node: Node) -> str:
    """``a.b.c`` for a name with plain selections; empty for anything else."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.optional and not node.test:
        prefix = qualified_name(node.operand)
        return f"{prefix}.{node.field}" if prefix else ""
    return ""
