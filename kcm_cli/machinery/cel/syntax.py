"""The nodes of a CEL expression. ``offset``: where a node stands in the text, for errors."""

from collections.abc import Iterator
from dataclasses import dataclass

from kcm_cli.machinery.cel.values import Literal


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal."""

    offset: int
    value: Literal


@dataclass(frozen=True, slots=True)
class Ident:
    """A name. ``rooted``: written with a leading dot."""

    offset: int
    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """``operand.field``; ``optional``: ``operand.?field``; ``test``: within ``has()``."""

    offset: int
    operand: "Node"
    field: str
    optional: bool = False
    test: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A function or an operator (by the name that errors give it), on a target or not."""

    offset: int
    function: str
    target: "Node | None"
    args: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class ListNode:
    """``[a, ?b]``; ``optional`` holds the indexes of the optional ones."""

    offset: int
    elements: "tuple[Node, ...]"
    optional: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class MapNode:
    """``{k: v, ?k: v}``: key, value, whether optional."""

    offset: int
    entries: "tuple[tuple[Node, Node, bool], ...]"


@dataclass(frozen=True, slots=True)
class StructNode:
    """``Type{field: value, ?field: value}``; ``colons``: where those of the fields are."""

    offset: int
    type_name: str
    fields: "tuple[tuple[str, Node, bool], ...]"
    colons: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Macro:
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
    """What is directly below a node."""
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
