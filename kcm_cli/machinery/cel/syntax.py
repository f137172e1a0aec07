"""The nodes of a CEL expression. ``offset``: where a node stands in the text, as errors tell it."""

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
    """``Type{field: value, ?field: value}``."""

    offset: int
    type_name: str
    fields: "tuple[tuple[str, Node, bool], ...]"


@dataclass(frozen=True, slots=True)
class Macro:
    """A comprehension: ``range.kind(names..., args...)``. See ``interpret`` for the kinds."""

    offset: int
    kind: str
    range: "Node"
    names: tuple[str, ...]
    args: "tuple[Node, ...]"


Node = Constant | Ident | Select | Call | ListNode | MapNode | StructNode | Macro
