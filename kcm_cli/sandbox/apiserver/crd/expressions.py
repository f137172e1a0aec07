"""Variables in CEL expressions."""

from kcm_cli.machinery.cel.syntax import Ident, Node, nodes_of


def uses(node: Node, name: str) -> bool:
    """Whether an expression uses a variable."""
    return any(isinstance(below, Ident) and below.name.lstrip(".") == name for below in nodes_of(node))
