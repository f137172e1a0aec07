"""Splits the text of an expression into tokens.

upstream: cel-go parser/gen/CEL.g4, parser/unescape.go
"""

import math
import re
import sys

import msgspec

from kcm_cli.machinery.cel.errors import CelSyntaxError, located
from kcm_cli.machinery.cel.values import INT_MAX, UINT_MAX, Literal, Uint

_PREFIX = r"(?P<prefix>[rRbB]{0,2})"
_TOKEN = re.compile(
    r"(?P<space>[ \t\r\n\f]+|//[^\n]*)"
    r"|(?P<float>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)"
    r"|(?P<int>0x[0-9a-fA-F]+[uU]?|\d+[uU]?)"
    rf"|{_PREFIX}(?P<string>\"\"\".*?\"\"\"|'''.*?'''"
    r"|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<escaped>`[A-Za-z0-9_.\-/ ]+`)"
    r"|(?P<op>\|\||&&|==|!=|<=|>=|[-+*/%!<>?:.,()\[\]{}])",
    re.DOTALL | re.ASCII,
)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|.)", re.DOTALL)
_SIMPLE = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "`": "`",
    "?": "?",
}
RESERVED = frozenset(
    (
        *("as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let"),
        *("loop", "package", "namespace", "null", "return", "true", "var", "void", "while"),
    )
)
MOST_PROBLEMS = 100
"""Of a text; more are not looked for."""
_INT_DIGITS = 4000
"""More than any number has, zeros in front included."""


class Token(msgspec.Struct, frozen=True):
    """kind: ``name``, ``escaped`` (a name in backticks), ``literal``, ``end``, or the operator itself."""

    kind: str
    offset: int
    text: str
    value: Literal = None


def tokens(text: str) -> tuple[list[Token], list[tuple[int, str]]]:
    """(all tokens and an ``end``, errors with their offsets). Stops after the maximum number of errors. Raises
    CelSyntaxError."""
    found: list[Token] = []
    problems: list[tuple[int, str]] = []
    position = 0
    while position < len(text) and len(problems) <= MOST_PROBLEMS:
        match = _TOKEN.match(text, position)
        if match is None:
            unknown = _unknown(text, position)
            problems.append((position, f"Syntax error: token recognition error at: '{unknown}'"))
            position += len(unknown)
            continue
        if match["space"] is None:
            found.append(_token(text, position, match))
        position = match.end()
    found.append(Token("end", len(text), "<EOF>"))
    return found, problems


def _unknown(text: str, position: int) -> str:
    """The text of a token recognition error: an unterminated string up to its end, half an operator with the next
    character, else one character."""
    sign = text[position]
    if sign in "\"'`":
        end = text.find("\n", position)
        return text[position : end + 1 or None]
    return text[position : position + 2] if sign in "=&|" else sign


def _token(text: str, offset: int, match: re.Match[str]) -> Token:
    shown = match[0]
    if match["op"] is not None:
        return Token(shown, offset, shown)
    if match["name"] is not None:
        if shown in ("true", "false", "null"):
            return Token("literal", offset, shown, {"true": True, "false": False, "null": None}[shown])
        return Token("in" if shown == "in" else "name", offset, shown)
    if match["escaped"] is not None:
        return Token("escaped", offset, shown)
    if match["float"] is not None:
        return Token("literal", offset, shown, _double(text, offset, shown))
    if match["int"] is not None:
        return Token("literal", offset, shown, _integer(text, offset, shown))
    return Token("literal", offset, shown, _string(text, offset, match["prefix"].lower(), match["string"]))


def _double(text: str, offset: int, shown: str) -> float:
    found = float(shown)
    if math.isinf(found):
        raise CelSyntaxError(located(text, offset, "invalid double literal"))
    return found


def _integer(text: str, offset: int, shown: str) -> int:
    unsigned = shown[-1] in "uU"
    digits = shown[:-1] if unsigned else shown
    value = INT_MAX * 4
    if len(digits) <= _INT_DIGITS:
        value = int(digits, 16) if digits.startswith("0x") else int(digits)
    if unsigned:
        if value > UINT_MAX:
            raise CelSyntaxError(located(text, offset, "invalid uint literal"))
        return Uint(value)
    if value > INT_MAX + 1:
        raise CelSyntaxError(located(text, offset, "invalid int literal"))
    return value


def _string(text: str, offset: int, prefix: str, quoted: str) -> str | bytes:
    width = 3 if quoted[:3] in ('"""', "'''") and len(quoted) >= 6 else 1
    body = quoted[width:-width].replace("\r\n", "\n")
    is_bytes = "b" in prefix
    if "r" not in prefix:
        try:
            body = _ESCAPE.sub(lambda match: _unescape(match[1], is_bytes), body)
        except KeyError:
            raise CelSyntaxError(located(text, offset, "invalid string literal")) from None
    if not is_bytes:
        return body
    return b"".join(bytes((ord(char) - 0xDC00,)) if 0xDC00 <= ord(char) < 0xDD00 else char.encode() for char in body)


def _letter(code: int) -> str:
    if code > sys.maxunicode or 0xD800 <= code < 0xE000:
        raise KeyError(code)
    return chr(code)


def _unescape(escape: str, is_bytes: bool) -> str:
    """The character of an escape. In bytes, it is marked by a surrogate. Raises KeyError for an unknown escape."""
    kind = escape[0]
    if kind in "uU" and len(escape) > 1:
        return _letter(int(escape[1:], 16))
    if len(escape) == 1:
        return _SIMPLE[escape]
    code = int(escape[1:], 16) if kind == "x" else int(escape, 8)
    return chr(0xDC00 + code) if is_bytes else chr(code)
