"""The overloads of all functions, read from ``signatures.txt`` on first use."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import msgspec

from kcm_cli.machinery.cel.types import BOOL, DURATION, TIMESTAMP, Type

_ALIASES = {"duration": DURATION.name, "timestamp": TIMESTAMP.name, "optional": "optional_type"}
_COMPARISONS = ("_<_", "_<=_", "_>_", "_>=_")
_COMPARED = (
    "bool,bool int,int int,double int,uint uint,uint uint,double uint,int double,double double,int double,uint "
    "string,string bytes,bytes timestamp,timestamp duration,duration"
)
_token = re.compile(r"[^(),]+|[(),]")


class Overload(msgspec.Struct, frozen=True):
    """An overload of a function. method: the first argument is the target. variables: the names of its type
    variables."""

    args: tuple[Type, ...]
    result: Type
    method: bool
    variables: tuple[str, ...]


@cache
def overloads() -> Mapping[str, tuple[Overload, ...]]:
    """The overloads by the function's name."""
    found: dict[str, list[Overload]] = {}
    text = Path(__file__).with_name("signatures.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if not line.startswith("#"):
            name, _, forms = line.rpartition(": ")
            method = name.startswith(".")
            found.setdefault(name.removeprefix("."), []).extend(_overload(form, method) for form in forms.split(" | "))
    for name in _COMPARISONS:
        found[name] = [Overload(tuple(_types(pair)), BOOL, False, ()) for pair in _COMPARED.split()]
    return {name: tuple(forms) for name, forms in found.items()}


def _overload(form: str, method: bool) -> Overload:
    args, _, result = form.strip().partition(">")
    kinds, made = tuple(_types(args)), next(_types(result))
    variables = dict.fromkeys(name for kind in (*kinds, made) for name in _variables(kind))
    return Overload(kinds, made, method, tuple(variables))


def _variables(kind: Type) -> Iterator[str]:
    if kind.variable:
        yield kind.name
    for each in kind.params:
        yield from _variables(each)


def _types(text: str) -> Iterator[Type]:
    """The types in a comma-separated list."""
    tokens = _token.findall(text)
    position = 0
    while position < len(tokens):
        kind, position = _type(tokens, position)
        yield kind
        position += 1


def _type(tokens: list[str], position: int) -> tuple[Type, int]:
    """(a type, the position after it)."""
    name = tokens[position]
    if len(name) == 1:
        return Type(name, variable=True), position + 1
    position += 1
    params: list[Type] = []
    if position < len(tokens) and tokens[position] == "(":
        while tokens[position] != ")":
            param, position = _type(tokens, position + 1)
            params.append(param)
        position += 1
    return Type(_ALIASES.get(name, name), tuple(params)), position
