"""What an expression refers to."""

from collections.abc import Iterator

from kcm_cli.machinery.cel.syntax import Call, Ident, ListNode, Macro, MapNode, Node, Select, StructNode


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
