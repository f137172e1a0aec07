"""Expands braces as bash does, before all else: ``a{b,c}``, ``{1..3}``. Pure."""

import re
from collections.abc import Sequence

from kcm_cli.sandbox.programs.errors import TooMuch, Unsupported
from kcm_cli.sandbox.programs.syntax import MOST_DEPTH, Part, Text, Word

_MOST_WORDS = 4096
_NUMBERS = re.compile(r"(-?\d{1,9})\.\.(-?\d{1,9})(?:\.\.(-?\d{1,9}))?", re.ASCII)
_LETTERS = re.compile(r"([a-zA-Z])\.\.([a-zA-Z])(?:\.\.(-?\d{1,9}))?", re.ASCII)
_Signs = list[str | Part]
"""Characters outside of quotation marks, and other parts."""


def expanded(word: Word) -> list[Word]:
    """The words that a word stands for, often itself. Raises TooMuch and Unsupported."""
    if not any(isinstance(part, Text) and not part.quoted and "{" in part.text for part in word):
        return [word]
    signs: _Signs = []
    for part in word:
        signs += part.text if isinstance(part, Text) and not part.quoted else [part]
    return [_joined(found) for found in _words(signs, 0)]


def _words(signs: _Signs, depth: int) -> list[_Signs]:
    if depth > MOST_DEPTH:
        raise TooMuch
    for begin in (at for at, sign in enumerate(signs) if sign == "{"):
        commas = _commas(signs, begin)
        if not commas:
            continue
        *separators, end = commas
        if separators:
            edges = [begin, *separators, end]
            inner = [
                found
                for first, last in zip(edges, edges[1:], strict=False)
                for found in _words(signs[first + 1 : last], depth + 1)
            ]
        else:
            inner = [list(text) for text in _sequence(signs[begin + 1 : end])]
        if inner:
            after = _words(signs[end + 1 :], depth + 1)
            if len(inner) * len(after) > _MOST_WORDS:
                raise TooMuch
            return [[*signs[:begin], *first, *last] for first in inner for last in after]
    return [signs]


def _commas(signs: _Signs, begin: int) -> list[int]:
    """Where the commas between two braces are, and the second brace; nothing without one."""
    found: list[int] = []
    depth = 0
    for at in range(begin + 1, len(signs)):
        sign = signs[at]
        if sign == "}" and not depth:
            return [*found, at]
        if sign == "," and not depth:
            found.append(at)
        depth += (sign == "{") - (sign == "}")
    return []


def _sequence(signs: _Signs) -> Sequence[str]:
    text = "".join(sign if isinstance(sign, str) else " " for sign in signs)
    numbers, letters = _NUMBERS.fullmatch(text), _LETTERS.fullmatch(text)
    if numbers is not None:
        first, last = int(numbers[1]), int(numbers[2])
        is_padded = any(re.match(r"-?0\d", end) for end in numbers.group(1, 2))
        width = max(map(len, numbers.group(1, 2))) if is_padded else 0
        return [f"{number:0{width}d}" for number in _range(first, last, numbers[3])]
    if letters is not None:
        if letters[1].islower() != letters[2].islower():
            raise Unsupported("{a..Z}")
        return [chr(number) for number in _range(ord(letters[1]), ord(letters[2]), letters[3])]
    return ()


def _range(first: int, last: int, step: str | None) -> range:
    by = abs(int(step or 1)) or 1
    if abs(last - first) // by >= _MOST_WORDS:
        raise TooMuch
    return range(first, last + 1, by) if first <= last else range(first, last - 1, -by)


def _joined(signs: _Signs) -> Word:
    found: list[Part] = []
    for sign in signs:
        if not isinstance(sign, str):
            found.append(sign)
        elif found and isinstance(found[-1], Text) and not found[-1].quoted:
            found[-1] = Text(found[-1].text + sign)
        else:
            found.append(Text(sign))
    return tuple(found)
