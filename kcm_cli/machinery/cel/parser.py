"""Text to nodes. Macros are expanded here.

upstream: cel-go parser/parser.go, parser/macro.go, ext/comprehensions.go
"""

from collections.abc import Callable

from kcm_cli.machinery.cel.errors import CelSyntaxError, located
from kcm_cli.machinery.cel.lexer import RESERVED, Token, tokens
from kcm_cli.machinery.cel.syntax import (
    Call,
    Constant,
    Ident,
    ListNode,
    Macro,
    MapNode,
    Node,
    Select,
    StructNode,
    children_of,
)
from kcm_cli.machinery.cel.values import INT_MAX, Uint

_START = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)
_MAX_DEPTH = 250
_RELATIONS = {
    "<": "_<_",
    "<=": "_<=_",
    ">": "_>_",
    ">=": "_>=_",
    "==": "_==_",
    "!=": "_!=_",
    "in": "@in",
}
_ADDITIONS = {"+": "_+_", "-": "_-_"}
_PRODUCTS = {"*": "_*_", "/": "_/_", "%": "_%_"}
# Number of names and of expressions that a macro may have.
_MACROS: dict[str, tuple[tuple[int, int], ...]] = {
    "all": ((1, 1), (2, 1)),
    "exists": ((1, 1), (2, 1)),
    "exists_one": ((1, 1),),
    "existsOne": ((1, 1), (2, 1)),
    "filter": ((1, 1),),
    "map": ((1, 1), (1, 2)),
    "sortBy": ((1, 1),),
    "transformList": ((2, 1), (2, 2)),
    "transformMap": ((2, 1), (2, 2)),
    "transformMapEntry": ((2, 1), (2, 2)),
    "optMap": ((1, 1),),
    "optFlatMap": ((1, 1),),
}


def parse(text: str) -> Node:
    """Raises CelSyntaxError."""
    try:
        node = _Parser(text).whole()
    except RecursionError:
        raise _too_deep(text, 0) from None
    _check_depth(text, node)
    return node


def _check_depth(text: str, node: Node) -> None:
    """Long chains are as deep as they are long. Raises CelSyntaxError."""
    level, depth = [node], 0
    while level:
        depth += 1
        if depth > _MAX_DEPTH:
            raise _too_deep(text, level[0].offset)
        level = [below for each in level for below in children_of(each)]


def _too_deep(text: str, offset: int) -> CelSyntaxError:
    return CelSyntaxError(located(text, offset, f"expression recursion limit exceeded: {_MAX_DEPTH}"))


class _Parser:
    """Recursive descent, one level per precedence."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokens(text)
        self._position = 0
        self._depth = 0

    def whole(self) -> Node:
        node = self._expression()
        if self._next.kind != "end":
            raise self._mismatch(self._next, "<EOF>", extraneous=True)
        return node

    @property
    def _next(self) -> Token:
        return self._tokens[self._position]

    def _take(self) -> Token:
        token = self._tokens[self._position]
        self._position += 1
        return token

    def _takes(self, kind: str) -> bool:
        if self._next.kind != kind:
            return False
        self._position += 1
        return True

    def _expect(self, kind: str) -> Token:
        token = self._next
        if token.kind != kind:
            raise self._mismatch(token, "IDENTIFIER" if kind == "name" else f"'{kind}'")
        return self._take()

    def _mismatch(self, token: Token, wanted: str, *, extraneous: bool = False) -> CelSyntaxError:
        kind = "extraneous input" if extraneous else "mismatched input"
        return self._error(token.offset, f"Syntax error: {kind} '{token.text}' expecting {wanted}")

    def _error(self, offset: int, message: str) -> CelSyntaxError:
        return CelSyntaxError(located(self._text, offset, message))

    # Precedence, from the loosest

    def _expression(self) -> Node:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise _too_deep(self._text, self._next.offset)
        condition = self._either()
        if self._next.kind == "?":
            offset = self._take().offset
            chosen = self._either()
            self._expect(":")
            condition = Call(offset, "_?_:_", None, (condition, chosen, self._expression()))
        self._depth -= 1
        return condition

    def _either(self) -> Node:
        return self._chain({"||": "_||_"}, self._both)

    def _both(self) -> Node:
        return self._chain({"&&": "_&&_"}, self._relation)

    def _relation(self) -> Node:
        return self._chain(_RELATIONS, self._sum)

    def _sum(self) -> Node:
        return self._chain(_ADDITIONS, self._product)

    def _product(self) -> Node:
        return self._chain(_PRODUCTS, self._unary)

    def _chain(self, operators: dict[str, str], operand: Callable[[], Node]) -> Node:
        node = operand()
        while self._next.kind in operators:
            token = self._take()
            node = Call(token.offset, operators[token.kind], None, (node, operand()))
        return node

    def _unary(self) -> Node:
        token = self._next
        if token.kind not in ("!", "-"):
            return self._member()
        count = 0
        while self._next.kind == token.kind:
            self._take()
            count += 1
        number = self._next
        if token.kind == "-" and (negated := _negated(number)) is not None:
            self._take()
            node: Node = self._members(Constant(token.offset, negated))
            count -= 1
        else:
            node = self._member()
        function = {"!": "!_", "-": "-_"}[token.kind]
        return Call(token.offset, function, None, (node,)) if count % 2 else node

    def _member(self) -> Node:
        return self._members(self._primary())

    def _members(self, node: Node) -> Node:
        while True:
            token = self._next
            if token.kind == ".":
                self._take()
                optional = self._takes("?")
                node = self._selected(node, token.offset, optional)
            elif token.kind == "[":
                self._take()
                optional = self._takes("?")
                index = self._expression()
                self._expect("]")
                node = Call(token.offset, "_[?_]" if optional else "_[_]", None, (node, index))
            elif token.kind == "{" and (name := _dotted(node)):
                node = self._struct(name)
            else:
                return node

    def _selected(self, node: Node, offset: int, optional: bool) -> Node:
        name = self._expect("name").text
        if optional or self._next.kind != "(":
            return Select(offset, node, name, optional)
        open_offset = self._take().offset
        args = self._arguments(")")
        return self._call(open_offset, name, node, args)

    def _arguments(self, end: str) -> tuple[Node, ...]:
        args: list[Node] = []
        if not self._takes(end):
            args.append(self._expression())
            while self._takes(","):
                args.append(self._expression())
            self._expect(end)
        return tuple(args)

    def _primary(self) -> Node:
        token = self._next
        match token.kind:
            case "literal":
                return self._literal(self._take())
            case "(":
                self._take()
                node = self._expression()
                self._expect(")")
                return node
            case "[":
                return self._list(self._take().offset)
            case "{":
                return self._map(self._take().offset)
            case "." | "name":
                return self._named()
        raise self._mismatch(token, _START)

    def _literal(self, token: Token) -> Node:
        if type(token.value) is int and token.value > INT_MAX:
            raise self._error(token.offset, "invalid int literal")
        return Constant(token.offset, token.value)

    def _named(self) -> Node:
        start = self._next.offset
        rooted = self._takes(".")
        token = self._expect("name")
        if token.text in RESERVED:
            raise self._error(token.offset, f"reserved identifier: {token.text}")
        if self._next.kind == "(":
            open_offset = self._take().offset
            return self._call(open_offset, token.text, None, self._arguments(")"))
        return Ident(start, f".{token.text}" if rooted else token.text)

    def _list(self, offset: int) -> Node:
        elements: list[Node] = []
        optional: set[int] = set()
        while not self._takes("]"):
            if self._takes("?"):
                optional.add(len(elements))
            elements.append(self._expression())
            if self._next.kind != "]":
                self._expect(",")
        return ListNode(offset, tuple(elements), frozenset(optional))

    def _map(self, offset: int) -> Node:
        entries: list[tuple[Node, Node, bool]] = []
        while not self._takes("}"):
            optional = self._takes("?")
            key = self._expression()
            self._expect(":")
            entries.append((key, self._expression(), optional))
            if self._next.kind != "}":
                self._expect(",")
        return MapNode(offset, tuple(entries))

    def _struct(self, name: str) -> Node:
        offset = self._expect("{").offset
        fields: list[tuple[str, Node, bool]] = []
        colons: list[int] = []
        while not self._takes("}"):
            optional = self._takes("?")
            field = self._expect("name").text
            colons.append(self._expect(":").offset)
            fields.append((field, self._expression(), optional))
            if self._next.kind != "}":
                self._expect(",")
        return StructNode(offset, name, tuple(fields), tuple(colons))

    # Macros

    def _call(self, offset: int, name: str, target: Node | None, args: tuple[Node, ...]) -> Node:
        if target is None:
            if name == "has" and len(args) == 1:
                selected = args[0]
                if not isinstance(selected, Select) or selected.test:
                    raise self._error(selected.offset, "invalid argument to has() macro")
                return Select(offset, selected.operand, selected.field, test=True)
            return Call(offset, name, None, args)
        for names, expressions in _MACROS.get(name, ()):
            if len(args) == names + expressions:
                return self._macro(offset, name, target, args, names)
        return Call(offset, name, target, args)

    def _macro(self, offset: int, kind: str, target: Node, args: tuple[Node, ...], count: int) -> Node:
        names: list[str] = []
        for arg in args[:count]:
            if not isinstance(arg, Ident):
                wanted = "is not an identifier" if kind in ("map", "filter", "sortBy") else "must be a simple name"
                raise self._error(arg.offset, f"argument {wanted}")
            names.append(arg.name)
        if kind == "existsOne":
            kind = "exists_one"
        return Macro(offset, kind, target, tuple(names), args[count:])


def _negated(token: Token) -> int | float | None:
    """The negative of a literal number."""
    value = token.value
    if token.kind != "literal" or isinstance(value, bool | Uint) or not isinstance(value, int | float):
        return None
    return -value


def _dotted(node: Node) -> str:
    """The name that a chain of selections spells; empty if it is another expression."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.optional and not node.test:
        prefix = _dotted(node.operand)
        return f"{prefix}.{node.field}" if prefix else ""
    return ""
