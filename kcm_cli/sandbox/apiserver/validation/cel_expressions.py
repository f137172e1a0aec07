"""Expressions of policies and webhooks: whether they can be compiled, and to what they evaluate.

Types are inferred where that is plain: literals, operators, macros, conversions; what is not known is let through.

Source: apiserver pkg/admission/plugin/cel/compile.go.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kcm_cli.machinery.cel import CelSyntaxError, located
from kcm_cli.machinery.cel.parser import parse
from kcm_cli.machinery.cel.syntax import Call, Constant, Ident, ListNode, Macro, MapNode, Node, Select, StructNode
from kcm_cli.machinery.cel.values import Uint
from kcm_cli.sandbox.apiserver.types import FieldError
from kcm_cli.sandbox.apiserver.validation import errors

BASE = ("object", "oldObject", "request", "namespaceObject")
_BOOLEAN = frozenset(
    {"_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "_&&_", "_||_", "!_", "@in", "startsWith", "endsWith", "matches"}
)
_RESULTS: Mapping[str, str] = {
    **dict.fromkeys(_BOOLEAN, "bool"),
    **dict.fromkeys(("size", "int", "indexOf", "lastIndexOf", "getFullYear", "getMonth", "getHours"), "int"),
    **dict.fromkeys(("string", "lowerAscii", "upperAscii", "trim", "join", "substring", "format"), "string"),
    **{"bool": "bool", "double": "double", "uint": "uint", "bytes": "bytes", "dyn": "dyn"},
    **{"duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp"},
}
_ARITHMETIC = frozenset({"_+_", "_-_", "_*_", "_/_", "_%_"})
_BOOLEAN_MACROS = frozenset({"all", "exists", "existsOne"})
_TYPES = frozenset(
    {"bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type", "google", "dyn"}
)
_LIBRARIES = frozenset(
    {"jsonpatch", "ip", "cidr", "quantity", "semver", "format", "math", "sets", "strings", "optional"}
)
_CONSTANTS = ((bool, "bool"), (Uint, "uint"), (int, "int"), (float, "double"), (str, "string"), (bytes, "bytes"))
_RESERVED = frozenset(
    [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)
_identifier = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*").fullmatch


def is_identifier(name: str) -> bool:
    """Whether a variable can have this name."""
    return bool(_identifier(name)) and name not in _RESERVED


def validate_expression(
    text: str, path: str, returns: Sequence[str], *, params: bool, authorizer: bool = True, extra: Sequence[str] = ()
) -> list[FieldError]:
    """An expression that must evaluate to one of these types (none: to anything)."""
    names = {*BASE, *extra, *(("params",) if params else ()), *(("authorizer",) if authorizer else ())}
    try:
        node = parse(text)
    except CelSyntaxError as error:
        return [errors.invalid(path, text, f"compilation failed: {error}")]
    missing = [item for item in _free(node, frozenset()) if not _known(item.name, names)]
    if missing:
        texts = (located(text, item.offset, _undeclared(item.name)) for item in missing)
        return [errors.invalid(path, text, "compilation failed: " + "\n".join(texts))]
    found = _type(node)
    if not returns or found is None or found in returns:
        return []
    if len(returns) == 1:
        return [errors.invalid(path, text, f"must evaluate to {returns[0]} but got {found}")]
    return [errors.invalid(path, text, f"must evaluate to one of [{' '.join(returns)}] but got {found}")]


def _undeclared(name: str) -> str:
    return f"undeclared reference to '{name}' (in container '')"


def _known(name: str, names: set[str]) -> bool:
    return name in names or name in _TYPES or name in _LIBRARIES or name.startswith(".")


def _free(node: Node, bound: frozenset[str]) -> Iterator[Ident]:
    """Names that no macro binds."""
    if isinstance(node, Ident):
        if node.name not in bound:
            yield node
        return
    if isinstance(node, Macro):
        yield from _free(node.range, bound)
        bound |= set(node.names)
    for part in _parts(node):
        yield from _free(part, bound)


def _parts(node: Node) -> Iterable[Node]:
    match node:
        case Select():
            return (node.operand,)
        case Call():
            return node.args if node.target is None else (node.target, *node.args)
        case ListNode():
            return node.elements
        case MapNode():
            return (part for key, value, _ in node.entries for part in (key, value))
        case StructNode():
            return (value for _, value, _ in node.fields)
        case Macro():
            return node.args
        case _:
            return ()


def _type(node: Node) -> str | None:
    """The type's name; None if it is not known."""
    match node:
        case Constant():
            return next((name for kind, name in _CONSTANTS if isinstance(node.value, kind)), "null_type")
        case Ident():
            return "dyn" if node.name in ("object", "oldObject", "params") else None
        case Select():
            if node.test:
                return "bool"
            return "dyn" if not node.optional and _type(node.operand) == "dyn" else None
        case Macro():
            return "bool" if node.kind in _BOOLEAN_MACROS else None
        case Call():
            return _result(node)
        case _:
            return None


def _result(node: Call) -> str | None:
    if node.function in _RESULTS:
        return _RESULTS[node.function]
    kinds = [_type(part) for part in node.args]
    if node.function == "_?_:_":
        return kinds[1] if kinds[1] == kinds[2] else None
    if node.function in _ARITHMETIC and len(set(kinds)) == 1 and kinds[0] in ("int", "uint", "double", "string"):
        return kinds[0]
    return None
