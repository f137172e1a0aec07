"""Text to nodes. Macros are expanded here.

upstream: cel-go parser/parser.go, parser/macro.go, ext/comprehensions.go
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

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

_LITERALS = "'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER"
_START = f"{{'[', '{{', '(', '.', '-', '!', {_LITERALS}}}"
_ARGUMENT = f"{{'[', '{{', '(', ')', '.', '-', '!', {_LITERALS}}}"
_INDEX = f"{{'[', '{{', '(', '.', '-', '!', '?', {_LITERALS}}}"
_ITEM = f"{{'[', ']', '{{', '(', '.', ',', '-', '!', '?', {_LITERALS}}}"
_KEY = f"{{'[', '{{', '}}', '(', '.', ',', '-', '!', '?', {_LITERALS}}}"
_FIELD = "{'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}"
_STARTS = frozenset(("[", "{", "(", ".", "-", "!", "literal", "name"))
_END = frozenset(("end",))
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
_GOES_ON = frozenset((*_RELATIONS, *_ADDITIONS, *_PRODUCTS, "&&", "||", "?", ".", "["))
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
    """Recursive descent, one level per precedence. Like the original, it goes on after a sign too much or too few, and
    tells all that it found.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens, self._problems = tokens(text)
        self._position = 0
        self._depth = 0
        self._after = [_END]
        """What may follow the expression that is read, innermost last."""

    def whole(self) -> Node:
        node = self._expression()
        token = self._next
        if token.kind != "end":
            if self._following.kind != "end":
                raise self._mismatch(token, "<EOF>")
            self._tell(token, f"extraneous input '{token.text}' expecting <EOF>")
        if self._problems:
            raise self._failure()
        return node

    def _failure(self) -> CelSyntaxError:
        """All that was found, in its order."""
        return CelSyntaxError("\n".join(located(self._text, *problem) for problem in sorted(self._problems)))

    @property
    def _next(self) -> Token:
        return self._tokens[self._position]

    @property
    def _following(self) -> Token:
        return self._tokens[min(self._position + 1, len(self._tokens) - 1)]

    @contextmanager
    def _within(self, *ends: str) -> Iterator[None]:
        self._after.append(frozenset(ends))
        yield
        self._after.pop()

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
        if token.kind == kind:
            return self._take()
        if self._following.kind == kind:
            self._tell(token, f"extraneous input '{token.text}' expecting '{kind}'")
            self._take()
            return self._take()
        if token.kind in (_STARTS if kind == ":" else _GOES_ON | self._after[-1]):
            self._tell(token, f"missing '{kind}' at '{token.text}'")
            return Token(kind, token.offset, kind)
        raise self._mismatch(token, f"'{kind}'")

    def _separated(self, end: str) -> None:
        """What is between two elements, or ends them, comes next. Raises CelSyntaxError."""
        token = self._next
        if token.kind in (end, ","):
            return
        wanted = f"{{'{end}', ','}}"
        if self._following.kind not in (end, ","):
            raise self._mismatch(token, wanted)
        self._tell(token, f"extraneous input '{token.text}' expecting {wanted}")
        self._take()

    def _tell(self, token: Token, message: str) -> None:
        self._problems.append((token.offset, f"Syntax error: {message}"))

    def _mismatch(self, token: Token, wanted: str) -> CelSyntaxError:
        return self._error(token.offset, f"Syntax error: mismatched input '{token.text}' expecting {wanted}")

    def _error(self, offset: int, message: str) -> CelSyntaxError:
        self._problems.append((offset, message))
        return self._failure()

    # Precedence, from the loosest

    def _expression(self) -> Node:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise _too_deep(self._text, self._next.offset)
        condition = self._either()
        if self._next.kind == "?":
            offset = self._take().offset
            with self._within(":"):
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
                if not optional and self._next.kind not in _STARTS:
                    self._check_start(_INDEX)
                with self._within("]"):
                    index = self._expression()
                self._expect("]")
                node = Call(token.offset, "_[?_]" if optional else "_[_]", None, (node, index))
            elif token.kind == "{" and (name := _dotted(node)):
                node = self._struct(name)
            else:
                return node

    def _name(self) -> Token:
        """What follows a dot. Raises CelSyntaxError."""
        token = self._next
        if token.kind != "name":
            shown = token.text if token.kind != "end" else ""
            raise self._error(token.offset, f"Syntax error: no viable alternative at input '.{shown}'")
        return self._take()

    def _selected(self, node: Node, offset: int, optional: bool) -> Node:
        if optional and self._next.kind != "name":
            raise self._mismatch(self._next, "{IDENTIFIER, ESC_IDENTIFIER}")
        name = self._name().text
        if optional or self._next.kind != "(":
            return Select(offset, node, name, optional)
        open_offset = self._take().offset
        args = self._arguments(")")
        return self._call(open_offset, name, node, args)

    def _arguments(self, end: str) -> tuple[Node, ...]:
        args: list[Node] = []
        if not self._takes(end):
            self._check_start(_ARGUMENT)
            with self._within(end, ","):
                args.append(self._expression())
                while self._takes(","):
                    args.append(self._expression())
            self._expect(end)
        return tuple(args)

    def _check_start(self, wanted: str) -> None:
        """Something that begins an expression comes next, or follows a sign too much. Raises CelSyntaxError."""
        token = self._next
        if token.kind in _STARTS:
            return
        if self._following.kind not in _STARTS:
            raise self._mismatch(token, wanted)
        self._tell(token, f"extraneous input '{token.text}' expecting {wanted}")
        self._take()

    def _primary(self) -> Node:
        token = self._next
        match token.kind:
            case "literal":
                return self._literal(self._take())
            case "(":
                self._take()
                with self._within(")"):
                    node = self._expression()
                self._expect(")")
                return node
            case "[":
                return self._list(self._take().offset)
            case "{":
                return self._map(self._take().offset)
            case "." | "name":
                return self._named()
        self._check_start(_START)
        return self._primary()

    def _literal(self, token: Token) -> Node:
        if type(token.value) is int and token.value > INT_MAX:
            raise self._error(token.offset, "invalid int literal")
        return Constant(token.offset, token.value)

    def _named(self) -> Node:
        start = self._next.offset
        rooted = self._takes(".")
        token = self._name() if rooted else self._take()
        if token.text in RESERVED:
            self._problems.append((token.offset, f"reserved identifier: {token.text}"))
        if self._next.kind == "(":
            open_offset = self._take().offset
            return self._call(open_offset, token.text, None, self._arguments(")"))
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
        """Go to each element up to the end; whether it is marked as optional. ``wanted``: what can come first. Raises
        CelSyntaxError.
        """
        if self._takes(end):
            return
        if self._takes(","):
            self._expect(end)
            return
        if self._next.kind != "?":
            self._check_start(wanted)
        while True:
            with self._within(end, ","):
                yield self._takes("?")
            self._separated(end)
            if self._takes(end):
                return
            self._take()
            if self._next.kind not in _STARTS and self._next.kind != "?":
                self._expect(end)
                return

    def _map(self, offset: int) -> Node:
        entries: list[tuple[Node, Node, bool]] = []
        for optional in self._elements("}", _KEY):
            with self._within(":"):
                key = self._expression()
            self._expect(":")
            entries.append((key, self._expression(), optional))
        return MapNode(offset, tuple(entries))

    def _struct(self, name: str) -> Node:
        offset = self._take().offset
        fields: list[tuple[str, Node, bool]] = []
        colons: list[int] = []
        for optional in self._elements("}", _FIELD):
            if self._next.kind != "name":
                raise self._mismatch(self._next, _FIELD)
            field = self._take().text
            colons.append(self._expect(":").offset)
            fields.append((field, self._expression(), optional))
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
