"""What an expression refers to."""

import re

from kcm_cli.machinery.cel.lexer import RESERVED
from kcm_cli.machinery.cel.syntax import Ident, Node, nodes_of

_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_NAME = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*")
_SPECIAL = re.compile(r"__|[-./]")


def uses(node: Node, name: str) -> bool:
    """Whether an expression mentions a variable."""
    return any(isinstance(below, Ident) and below.name.lstrip(".") == name for below in nodes_of(node))


def escaped(name: str) -> str:
    """A field's name as expressions write it; empty where they cannot."""
    if name in RESERVED:
        return f"__{name}__"
    if not _NAME.fullmatch(name):
        return ""
    return _SPECIAL.sub(lambda found: _ESCAPES[found[0]], name)
