"""Arithmetic of shells, ``$((expression))``: sums, products and comparisons of 64-bit integers. Pure."""

import ast
import operator
import re
from collections.abc import Callable, Mapping

from kcm_cli.sandbox.programs.errors import Malformed, Unsupported

_MOST_CHARACTERS = 256
_MORE = "$((…)) of more than decimal numbers, sums, products and comparisons"
_KNOWN = re.compile(r"[\w\s*/%()<>=!+-]*", re.ASCII)
_OTHER = re.compile(r"\+\+|--|(?<![=!<>])=(?!=)|<<=|>>=|!(?!=)", re.ASCII)
"""What sets variables, and negations."""
_NUMERAL = re.compile(r"\b\d\w*", re.ASCII)
_PLAIN = re.compile(r"0|[1-9]\d*|0[xX][0-9a-fA-F]+", re.ASCII)
"""Other numerals are octal, or such as only Python has."""
_VARIABLE = re.compile(r"\b[A-Za-z_]\w*", re.ASCII)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,18})", re.ASCII)
_OPERATIONS: Mapping[type[ast.AST], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    ast.Mod: lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1),
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip
_SIGNS: Mapping[type[ast.AST], int] = {ast.UAdd: 1, ast.USub: -1}


class DividedByZero(Exception):
    """A division by zero."""


def _are_plain(text: str) -> bool:
    """Whether all numerals are read alike by shells and Python."""
    return all(map(_PLAIN.fullmatch, _NUMERAL.findall(text)))


def evaluate(text: str, get: Callable[[str], str]) -> int:
    """The value of an expression, which is one of Python, too, but for the names of its variables. get: reads a
    variable, empty if it is not set.

    Raises Malformed, Unsupported, DividedByZero.
    """
    if len(text) > _MOST_CHARACTERS or not _KNOWN.fullmatch(text) or _OTHER.search(text) or not _are_plain(text):
        raise Unsupported(_MORE)
    try:
        parsed = ast.parse(_VARIABLE.sub(r"_\g<0>", " ".join(text.split())) or "0", mode="eval")
        return _value(parsed.body, get)
    except (SyntaxError, MemoryError):
        raise Malformed("arithmetic syntax error") from None
    except ZeroDivisionError:
        raise DividedByZero from None


def _value(node: ast.expr, get: Callable[[str], str]) -> int:
    match node:
        case ast.Constant(int(number)) if not isinstance(number, bool) and number < 1 << 63:
            found = number
        case ast.Name(name):
            text = get(name[1:]).strip() or "0"
            if not _NUMBER.fullmatch(text):
                raise Unsupported(_MORE)
            found = int(text)
        case ast.UnaryOp(sign, operand) if type(sign) in _SIGNS:
            found = _SIGNS[type(sign)] * _value(operand, get)
        case ast.BinOp(left, sign, right) | ast.Compare(left, [sign], [right]) if type(sign) in _OPERATIONS:
            found = int(_OPERATIONS[type(sign)](_value(left, get), _value(right, get)))
        case _:
            raise Unsupported(_MORE)
    return (found + (1 << 63)) % (1 << 64) - (1 << 63)
