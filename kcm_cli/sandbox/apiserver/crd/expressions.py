"""What an expression refers to."""

import re
from collections.abc import Iterator

from kcm_cli.machinery.cel.lexer import RESERVED
from kcm_cli.machinery.cel.syntax import Call, Ident, ListNode, Macro, MapNode, Node, Select, StructNode

_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_NAME = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*")
_SPECIAL = re.compile(r"__|[-./]")


def uses(node: Node, name: str) -> bool:
    """Whether an expression mentions a variable."""
    if isinstance(node, Ident):
        return node.name.lstrip(".") == name
    return any(uses(below, name) for below in below_of(node))


def below_of(node: Node) -> Iterator[Node]:
    """The parts of a node."""
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
                yield key
                yield value
        case StructNode(fields=fields):
            for _, value, _ in fields:
                yield value
        case Macro(range=source, args=args):
            yield source
            yield from args


def escaped(name: str) -> str:
    """A field's name as expressions write it; empty where they cannot."""
    if name in RESERVED:
        return f"__{name}__"
    if not _NAME.fullmatch(name):
        return ""
    return _SPECIAL.sub(lambda found: _ESCAPES[found[0]], name)
