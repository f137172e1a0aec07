"""Expands braces as bash does, before all else: ``a{b,c}``, ``{1..3}``. Pure."""

import re
from collections.abc import Sequence
from itertools import groupby, pairwise

from kcm_cli.sandbox.programs.errors import TooMuch, Unsupported
from kcm_cli.sandbox.programs.filesystem import PER_CHARACTER, Work
from kcm_cli.sandbox.programs.syntax import MOST_DEPTH, Part, Text, Word

_MOST_WORDS = 4096
_MOST_IN_SEQUENCE = 40
"""The limit for the signs of a sequence such as ``1..3``, which has three numbers at most."""
_PER_WORD, _PER_SIGN = 8, 1 / 4
"""The cost of a word and of copying a sign (see ``filesystem.Work``)."""
_SIGN = re.compile(r"[^{},]+|[{},]")
_NUMBERS = re.compile(r"(-?\d{1,9})\.\.(-?\d{1,9})(?:\.\.(-?\d{1,9}))?", re.ASCII)
_LETTERS = re.compile(r"([a-zA-Z])\.\.([a-zA-Z])(?:\.\.(-?\d{1,9}))?", re.ASCII)
_Signs = list[str | Part]
"""Braces, commas and the text between them outside of quotation marks, and other parts."""


def expanded(word: Word, work: Work) -> list[Word]:
    """The words that a word stands for, often itself. Raises TooMuch and Unsupported."""
    if not any(isinstance(part, Text) and not part.quoted and "{" in part.text for part in word):
        return [word]
    signs: _Signs = []
    for part in word:
        signs += _SIGN.findall(part.text) if isinstance(part, Text) and not part.quoted else [part]
    return [_joined(found, work) for found in _words(signs, work, 0)]


def _words(signs: _Signs, work: Work, depth: int) -> list[_Signs]:
    if depth > MOST_DEPTH:
        raise TooMuch
    work.spend(len(signs) * _PER_SIGN)
    for begin, (separators, end) in sorted(_pairs(signs).items()):
        inner: list[_Signs] = []
        edges = [begin, *separators, end]
        if separators:
            for first, last in pairwise(edges):
                inner += _words(signs[first + 1 : last], work, depth + 1)
                if len(inner) > _MOST_WORDS:
                    raise TooMuch
        elif end - begin <= _MOST_IN_SEQUENCE:
            inner = [[text] for text in _sequence(signs[begin + 1 : end])]
        if inner:
            return _product(signs[:begin], inner, _words(signs[end + 1 :], work, depth + 1), work)
    return [signs]


def _product(before: _Signs, inner: Sequence[_Signs], after: Sequence[_Signs], work: Work) -> list[_Signs]:
    if len(inner) * len(after) > _MOST_WORDS:
        raise TooMuch
    found: list[_Signs] = []
    for first in inner:
        for last in after:
            work.spend(_PER_WORD + (len(before) + len(first) + len(last)) * _PER_SIGN)
            found.append([*before, *first, *last])
    return found


def _pairs(signs: _Signs) -> dict[int, tuple[list[int], int]]:
    """Of each brace that is closed: the commas between the two, and the second one."""
    found: dict[int, tuple[list[int], int]] = {}
    opened: list[tuple[int, list[int]]] = []
    for at, sign in enumerate(signs):
        if sign == "{":
            opened.append((at, []))
        elif sign == "," and opened:
            opened[-1][1].append(at)
        elif sign == "}" and opened:
            begin, commas = opened.pop()
            found[begin] = commas, at
    return found


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


def _joined(signs: _Signs, work: Work) -> Word:
    found: list[Part] = []
    for is_text, group in groupby(signs, lambda sign: isinstance(sign, str)):
        if is_text:
            text = "".join(sign for sign in group if isinstance(sign, str))
            work.spend(len(text) * PER_CHARACTER)
            found.append(Text(text))
        else:
            found += (part for part in group if not isinstance(part, str))
    return tuple(found)
