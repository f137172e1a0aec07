"""Arithmetic of shells: ``$((expression))``, with 64-bit integers. Pure.

upstream: POSIX, Shell Command Language, 2.6.4
"""

import re
from collections.abc import Callable, Mapping

from kcm_cli.sandbox.programs.errors import Malformed, TooMuch

_MOST_CHARACTERS, _MOST_DEPTH = 1 << 12, 32
_TOKEN = re.compile(
    r"\s*(?:(0[xX][0-9a-fA-F]{1,16}|\d{1,19})|([A-Za-z_]\w*)|(<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[-+*/%<>=&|^!~?:(),]))",
    re.ASCII,
)
_LEVELS: Mapping[str, int] = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, "<=": 7, ">": 7, ">=": 7, "<<": 8, ">>": 8,
    "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip
_ASSIGNING = frozenset(("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="))
_BITS = 64


class DividedByZero(Exception):
    """A division by zero."""


def evaluate(text: str, get: Callable[[str], str], put: Callable[[str, str], None]) -> int:
    """The value of an expression. get, put: read and set variables; unset ones are empty.

    Raises Malformed, TooMuch, DividedByZero.
    """
    if len(text) > _MOST_CHARACTERS:
        raise TooMuch
    return _Parser(text, get, put).whole()


class _Parser:
    def __init__(self, text: str, get: Callable[[str], str], put: Callable[[str, str], None]) -> None:
        self._tokens: list[str] = []
        at, text = 0, text.strip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise Malformed("arithmetic syntax error")
            self._tokens.append(match[1] or match[2] or match[3])
            at = match.end()
        self._at = 0
        self._depth = 0
        self._get = get
        self._put = put

    def whole(self) -> int:
        if not self._tokens:
            return 0
        found = self._assigned(live=True)
        if self._at < len(self._tokens):
            raise Malformed("arithmetic syntax error")
        return found

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _assigned(self, *, live: bool) -> int:
        """An assignment or a choice. live: whether it is evaluated; otherwise it is only read."""
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise TooMuch
        name, operator = self._peek(), self._tokens[self._at + 1] if self._at + 1 < len(self._tokens) else ""
        if operator in _ASSIGNING and (name[:1].isalpha() or name[:1] == "_"):
            self._at += 2
            value = self._assigned(live=live)
            if operator != "=":
                value = _applied(operator[:-1], self._value(name), value, live=live)
            if live:
                self._put(name, str(value))
        else:
            value = self._binary(1, live=live)
            if self._peek() == "?":
                self._at += 1
                first = self._assigned(live=live and value != 0)
                self._take(":")
                second = self._assigned(live=live and value == 0)
                value = first if value else second
        self._depth -= 1
        return value

    def _binary(self, least: int, *, live: bool) -> int:
        left = self._unary(live=live)
        while (operator := self._peek()) and _LEVELS.get(operator, 0) >= least:
            self._at += 1
            needed = live and not (operator == "&&" and left == 0) and not (operator == "||" and left != 0)
            right = self._binary(_LEVELS[operator] + 1, live=needed)
            left = _applied(operator, left, right, live=needed or operator in ("&&", "||"))
        return left

    def _unary(self, *, live: bool) -> int:
        signs: list[str] = []
        while self._peek() in ("-", "+", "!", "~"):
            signs.append(self._peek())
            self._at += 1
        token = self._peek()
        self._at += 1
        if token == "(":
            value = self._assigned(live=live)
            self._take(")")
        elif token[:1].isdigit():
            value = _number(token)
        elif token[:1].isalpha() or token[:1] == "_":
            value = self._value(token)
        else:
            raise Malformed("arithmetic syntax error")
        for sign in reversed(signs):
            value = {"-": -value, "+": value, "!": int(not value), "~": ~value}[sign]
        return _wrapped(value)

    def _value(self, name: str) -> int:
        text = self._get(name).strip()
        sign, digits = (-1, text[1:]) if text[:1] == "-" else (1, text)
        if not digits:
            return 0
        if len(digits) > 19 or re.fullmatch(r"0[xX][0-9a-fA-F]+|\d+", digits, re.ASCII) is None:
            raise Malformed("arithmetic syntax error")
        return sign * _number(digits)

    def _take(self, token: str) -> None:
        if self._peek() != token:
            raise Malformed("arithmetic syntax error")
        self._at += 1


def _number(text: str) -> int:
    if text[:2].lower() == "0x":
        return int(text, 16)
    try:
        return int(text, 8) if text[0] == "0" else int(text)
    except ValueError:
        raise Malformed("arithmetic syntax error") from None


def _wrapped(value: int) -> int:
    half = 1 << (_BITS - 1)
    return (value + half) % (1 << _BITS) - half


def _applied(operator: str, a: int, b: int, *, live: bool) -> int:
    if not live:
        return 0
    match operator:
        case "+" | "-" | "*":
            found = {"+": a + b, "-": a - b, "*": a * b}[operator]
        case "/" | "%":
            if b == 0:
                raise DividedByZero
            quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            found = quotient if operator == "/" else a - quotient * b
        case "<<" | ">>":
            found = a << (b % _BITS) if operator == "<<" else a >> (b % _BITS)
        case "&" | "|" | "^":
            found = {"&": a & b, "|": a | b, "^": a ^ b}[operator]
        case "&&" | "||":
            found = int(bool(a) and bool(b)) if operator == "&&" else int(bool(a) or bool(b))
        case _:
            found = int({"==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[operator])
    return _wrapped(found)
