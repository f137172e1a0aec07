"""Parses text to nodes, and expands macros.

upstream: cel-go parser/parser.go, parser/macro.go, ext/comprehensions.go
"""

from collections.abc import Iterator

from kcm_cli.machinery.cel.errors import CelSyntaxError, unlocated
from kcm_cli.machinery.cel.lexer import RESERVED, Token
from kcm_cli.machinery.cel.reader import STARTS, Reader
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
    qualified_name,
)
from kcm_cli.machinery.cel.values import INT_MAX, Uint

_LITERALS = "'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER"
_START = f"{{'[', '{{', '(', '.', '-', '!', {_LITERALS}}}"
_ARGUMENT = f"{{'[', '{{', '(', ')', '.', '-', '!', {_LITERALS}}}"
_INDEX = f"{{'[', '{{', '(', '.', '-', '!', '?', {_LITERALS}}}"
_ITEM = f"{{'[', ']', '{{', '(', '.', ',', '-', '!', '?', {_LITERALS}}}"
_KEY = f"{{'[', '{{', '}}', '(', '.', ',', '-', '!', '?', {_LITERALS}}}"
_FIELD = "{'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}"
_NUMBER = frozenset(("literal",))
_NEGATED = STARTS - {"!"}
"""What can follow a minus in front of a member."""
_MAX_DEPTH, _MAX_CHARACTERS = 250, 100_000
_OPERATORS: dict[str, tuple[int, str]] = {
    "||": (1, "_||_"),
    "&&": (2, "_&&_"),
    "<": (3, "_<_"),
    "<=": (3, "_<=_"),
    ">": (3, "_>_"),
    ">=": (3, "_>=_"),
    "==": (3, "_==_"),
    "!=": (3, "_!=_"),
    "in": (3, "@in"),
    "+": (4, "_+_"),
    "-": (4, "_-_"),
    "*": (5, "_*_"),
    "/": (5, "_/_"),
    "%": (5, "_%_"),
}
"""Precedence and name."""
# Number of names and of expressions that a macro may have.
_MACROS: dict[str, tuple[tuple[int, int], ...]] = {
    "all": ((1, 1), (2, 1)),
    "exists": ((1, 1), (2, 1)),
    "exists_one": ((1, 1), (2, 1)),
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
    """Parse an expression. Raises CelSyntaxError."""
    if len(text) > _MAX_CHARACTERS:
        problem = f"expression code point size exceeds limit: size: {len(text)}, limit {_MAX_CHARACTERS}"
        raise CelSyntaxError(unlocated(problem))
    try:
        node = _Parser(text).whole()
    except RecursionError:
        raise _too_deep() from None
    _check_depth(node)
    return node


def _check_depth(node: Node) -> None:
    """Check the depth of the tree; a long chain of operators is a deep tree. Raises CelSyntaxError."""
    level, depth = [node], 0
    while level:
        depth += 1
        if depth > _MAX_DEPTH:
            raise _too_deep()
        level = [below for each in level for below in children_of(each)]


def _too_deep() -> CelSyntaxError:
    return CelSyntaxError(unlocated(f"expression recursion limit exceeded: {_MAX_DEPTH}"))


class _Parser:
    """Recursive descent, but for operators: frames of Python limit the depth of what it can read."""

    def __init__(self, text: str) -> None:
        self._in = Reader(text)
        self._depth = 0

    def whole(self) -> Node:
        node = self._expression()
        self._in.end()
        return node

    # Operators

    def _expression(self) -> Node:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise _too_deep()
        condition = self._operation()
        if self._in.next.kind == "?":
            offset = self._in.take().offset
            with self._in.within(":"):
                chosen = self._operation()
            self._in.expect(":")
            condition = Call(offset, "_?_:_", None, (condition, chosen, self._expression()))
        self._depth -= 1
        return condition

    def _operation(self, least: int = 1) -> Node:
        """Operands, joined by operators of this precedence or a higher one. All group to the left."""
        node = self._unary()
        while (found := _OPERATORS.get(self._in.next.kind)) is not None and found[0] >= least:
            precedence, name = found
            node = Call(self._in.take().offset, name, None, (node, self._operation(precedence + 1)))
        return node

    def _unary(self) -> Node:
        token = self._in.next
        if token.kind == "!":
            return self._not(token.offset)
        if token.kind == "-":
            return self._minus(token.offset)
        if not self._in.check_start(_START):
            return _missing(token)
        return self._unary() if self._in.next.kind in ("!", "-") else self._members(self._primary())

    def _not(self, offset: int) -> Node:
        count = 0
        while self._in.takes("!"):
            count += 1
        if not self._in.check_negated(_START):
            return _missing(self._in.next)
        node = self._members(self._primary())
        return Call(offset, "!_", None, (node,)) if count % 2 else node

    def _minus(self, offset: int) -> Node:
        count = 0
        while self._in.next.kind == "-":
            if not self._in.check_minus(_NEGATED):
                return _missing(self._in.next)
            self._in.take()
            count += 1
        if (negated := _negated(self._in.next)) is not None:
            self._in.take()
            node: Node = self._members(Constant(offset, negated))
            count -= 1
        else:
            node = self._members(self._primary())
        return Call(offset, "-_", None, (node,)) if count % 2 else node

    def _members(self, node: Node) -> Node:
        while True:
            token = self._in.next
            if token.kind == ".":
                self._in.take()
                optional = self._in.takes("?")
                node = self._selected(node, token.offset, optional)
            elif token.kind == "[":
                self._in.take()
                optional = self._in.takes("?")
                if not optional and self._in.next.kind not in STARTS:
                    self._in.check_start(_INDEX)
                with self._in.within("]"):
                    index = self._expression()
                self._in.expect("]")
                node = Call(token.offset, "_[?_]" if optional else "_[_]", None, (node, index))
            elif token.kind == "{" and (name := qualified_name(node)):
                node = self._struct(name)
            else:
                return node

    def _selected(self, node: Node, offset: int, optional: bool) -> Node:
        if optional and self._in.next.kind != "name":
            raise self._in.mismatch(self._in.next, "{IDENTIFIER, ESC_IDENTIFIER}")
        name = self._in.name().text
        if optional or self._in.next.kind != "(":
            return Select(offset, node, name, optional)
        open_offset = self._in.take().offset
        args = self._arguments()
        return self._call(open_offset, name, node, args)

    def _arguments(self) -> tuple[Node, ...]:
        args: list[Node] = []
        if not self._in.takes(")"):
            self._in.check_start(_ARGUMENT, ")")
            if self._in.takes(")"):
                return ()
            with self._in.within(")", ","):
                args.append(self._expression())
                while self._in.takes(","):
                    args.append(self._expression())
            self._in.expect(")")
        return tuple(args)

    def _primary(self) -> Node:
        token = self._in.next
        match token.kind:
            case "literal":
                return self._literal(self._in.take())
            case "(":
                self._in.take()
                with self._in.within(")"):
                    node = self._expression()
                self._in.expect(")")
                return node
            case "[":
                return self._list(self._in.take().offset)
            case "{":
                return self._map(self._in.take().offset)
            case "." | "name":
                return self._named()
            case "-" if self._in.check_minus(_NUMBER):
                minus = self._in.take()
                if (negated := _negated(self._in.next)) is not None:
                    self._in.take()
                    return Constant(minus.offset, negated)
            case "-":
                return _missing(token)
        raise self._in.mismatch(token, _START)

    def _literal(self, token: Token) -> Node:
        if type(token.value) is int and token.value > INT_MAX:
            raise self._in.error(token.offset, "invalid int literal")
        return Constant(token.offset, token.value)

    def _named(self) -> Node:
        start = self._in.next.offset
        rooted = self._in.takes(".")
        token = self._in.name() if rooted else self._in.take()
        if token.text in RESERVED:
            self._in.note(token.offset, f"reserved identifier: {token.text}")
        if self._in.next.kind == "(":
            open_offset = self._in.take().offset
            return self._call(open_offset, token.text, None, self._arguments())
        return Ident(start, f".{token.text}" if rooted else token.text)

    def _list(self, offset: int) -> Node:
        elements: list[Node] = []
        optional: set[int] = set()
        for mark in self._elements("]", _ITEM):
            if mark:
                optional.add(len(elements))
            elements.append(self._expression())
        return ListNode(offset, tuple(elements), frozenset(optional))

    def _elements(self, end: str, wanted: str) -> Iterator[bool]:
        """Iterate over elements up to ``end``; yields whether each is marked as optional. ``wanted``: what may come
        first. Raises CelSyntaxError."""
        if self._in.takes(end):
            return
        if self._in.takes(","):
            self._in.expect(end)
            return
        if self._in.next.kind != "?":
            self._in.check_start(wanted, end)
            if self._in.takes(end):
                return
        while True:
            with self._in.within(end, ","):
                yield self._in.takes("?")
            self._in.separated(end)
            if self._in.takes(end):
                return
            self._in.take()
            if self._in.next.kind not in STARTS and self._in.next.kind != "?":
                self._in.expect(end)
                return

    def _map(self, offset: int) -> Node:
        entries: list[tuple[Node, Node, bool]] = []
        for optional in self._elements("}", _KEY):
            with self._in.within(":"):
                key = self._expression()
            self._in.expect(":")
            entries.append((key, self._expression(), optional))
        return MapNode(offset, tuple(entries))

    def _struct(self, name: str) -> Node:
        offset = self._in.take().offset
        fields: list[tuple[str, Node, bool]] = []
        colons: list[int] = []
        for optional in self._elements("}", _FIELD):
            if self._in.next.kind != "name":
                raise self._in.mismatch(self._in.next, _FIELD)
            field = self._in.take().text
            colons.append(self._in.expect(":").offset)
            fields.append((field, self._expression(), optional))
        return StructNode(offset, name, tuple(fields), tuple(colons))

    # Macros

    def _call(self, offset: int, name: str, target: Node | None, args: tuple[Node, ...]) -> Node:
        if target is None:
            if name == "has" and len(args) == 1:
                selected = args[0]
                if not isinstance(selected, Select) or selected.test:
                    raise self._in.error(selected.offset, "invalid argument to has() macro")
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
                raise self._in.error(arg.offset, f"argument {wanted}")
            names.append(arg.name)
        if kind == "existsOne":
            kind = "exists_one"
        return Macro(offset, kind, target, tuple(names), args[count:])


def _missing(token: Token) -> Node:
    """The placeholder for a missing expression, whose error was recorded."""
    return Ident(token.offset, "")


def _negated(token: Token) -> int | float | None:
    """The negative of a number literal; None for other tokens."""
    value = token.value
    if token.kind != "literal" or isinstance(value, bool | Uint) or not isinstance(value, int | float):
        return None
    return -value
