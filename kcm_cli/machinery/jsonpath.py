"""Kubernetes' JSONPath, as used for columns: ``.status.conditions[?(@.type=="Ready")].status``.

Supports fields, quoted fields, indexes, slices, unions, ``*``, ``..`` and filters with one comparison. Missing values
yield no result.
"""

import re
from collections.abc import Callable, Iterator
from itertools import chain, islice, repeat
from math import isfinite

from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.integers import parse_int64
from kcm_cli.machinery.remembered import remembered


class _Work:
    """How many values the filters of one evaluation may still look at and find, nested ones too."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = _MOST_VALUES


Step = Callable[[object, _Work], Iterator[object]]
"""Finds values in a value."""
_Operand = Callable[[object, _Work], list[object]]

_FIELD = re.compile(r"(?:[^\s.\[\]{}(),'\"\\]|\\.)+")
_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"")
_KEY, _DOT = re.compile(r"'([^']*)'"), re.compile(r"(?<!\\)\.")
_FILTER = re.compile(r"\?\((.*)\)$", re.DOTALL)
_COMPARISON = re.compile(r"(==|!=|<=|>=|<|>)")
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?")
_SLICE = re.compile(r"(-?[0-9]*):(-?[0-9]*)(?::(-?[0-9]*))?")


_MOST_FILTERS = 20
"""Filters may be in filters, each of which is parsed by itself."""
_MOST_VALUES = 200_000
"""What steps may find together, each the same share: ``..[*]..[*]`` in a deep value finds more than there is time for.
All filters of an evaluation have as much together."""


class Path:
    """A parsed path."""

    def __init__(self, steps: list[Step]) -> None:
        self._steps = steps

    def find(self, value: object) -> list[object]:
        """The values at the path. If there are very many, the first ones."""
        found, most, work = [value], self._share(), _Work()
        for step in self._steps:
            found = list(islice(chain.from_iterable(map(step, found, repeat(work))), most))
        return found

    def _share(self) -> int:
        return max(1, _MOST_VALUES // max(1, len(self._steps)))

    def _in_filter(self, value: object, work: _Work) -> list[object]:
        """The values at the path of an operand, as long as there is work left."""
        found, most = [value], self._share()
        for step in self._steps:
            found = list(islice(chain.from_iterable(map(step, found, repeat(work))), max(0, min(most, work.left))))
            work.left -= len(found)
        return found


@remembered(512)
def parse(text: str) -> Path:
    """Parse a path. Raises FormatError."""
    if text.count("?(") > _MOST_FILTERS:
        raise FormatError(f"more than {_MOST_FILTERS} filters")
    steps: list[Step] = []
    at = 1 if text.startswith("$") else 0
    while at < len(text):
        if text.startswith("..", at):
            if steps[-1:] == [_descend]:
                raise FormatError("invalid multiple recursive descent")
            if text.startswith("*", at + 2):
                raise FormatError("unrecognized character in action: '*'")
            steps.append(_descend)
            at += 1 if text[at + 2 : at + 3] not in ("[", ".") else 2
        elif text.startswith(".", at):
            at = _field(text, at + 1, steps)
        elif text.startswith(" ", at):
            at += 1
        elif text.startswith("[", at):
            end = _closing(text, at)
            steps.append(_bracket(text[at + 1 : end].strip()))
            at = end + 1
        elif at == 0:
            at = _field(text, at, steps)
        else:
            raise FormatError(f"unrecognized character in action: {text[at]!r}")
    return Path(steps)


def _field(text: str, at: int, steps: list[Step]) -> int:
    if text.startswith("[", at):
        return at
    if at == len(text):  # a dot at the end names a field without a name
        steps.append(_named(""))
        return at
    found = _FIELD.match(text, at)
    if found is None:
        raise FormatError(f"unrecognized character in action: {text[at]!r}")
    steps.append(_field_of(found[0]))
    return found.end()


def _closing(text: str, at: int) -> int:
    """The position of the bracket that closes the one at a position."""
    depth, quote = 0, ""
    for index in range(at, len(text)):
        char = text[index]
        if quote:
            quote = "" if char == quote and text[index - 1] != "\\" else quote
        elif char in "'\"":
            quote = char
        elif char in "[(":
            depth += 1
        elif char in "])":
            depth -= 1
            if depth == 0:
                return index
    raise FormatError("unterminated array")


def _bracket(inner: str) -> Step:
    if inner == "*":
        return _everything
    if not inner:
        return _sliced(slice(0, 1))
    if found := _FILTER.match(inner):
        return _filter(found[1])
    if found := _SLICE.fullmatch(inner):
        start, stop, step = (_whole(part) if part else None for part in found.groups())
        return _sliced(slice(start, stop, step)) if step is None or step > 0 else _nothing
    steps = [_part(part.strip()) for part in _union_parts(inner)]
    return steps[0] if len(steps) == 1 else _union(steps)


def _union_parts(inner: str) -> Iterator[str]:
    """The parts between the commas that are not in quotation marks."""
    quote, start = "", 0
    for at, char in enumerate(inner):
        if quote:
            quote = "" if char == quote and inner[at - 1] != "\\" else quote
        elif char in "'\"":
            quote = char
        elif char == ",":
            yield inner[start:at]
            start = at + 1
    yield inner[start:]


def _part(text: str) -> Step:
    if found := _KEY.fullmatch(text):
        return _nested(found[1])
    if re.fullmatch(r"-?[0-9]+", text):
        return _indexed(_whole(text))
    raise FormatError(f"invalid array index {text}")


def _whole(text: str) -> int:
    number = parse_int64(text)
    if number is None:
        raise FormatError(f"invalid array index {text[:64]}")
    return number


def _field_of(text: str) -> Step:
    """A name, perhaps with escapes, or a star."""
    return _everything if text == "*" else _named(re.sub(r"\\(.)", r"\1", text))


def _named(name: str) -> Step:
    def step(value: object, work: _Work) -> Iterator[object]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _nested(text: str) -> Step:
    """A key in quotation marks, which upstream reads as a path: its dots separate names unless they are escaped."""
    names = _DOT.split(text)
    if text and "" in names[:-1]:
        raise FormatError(f"invalid array index '{text[:64]}'")
    steps = [_field_of(name) for name in names]

    def step(value: object, work: _Work) -> Iterator[object]:
        found = [value]
        for one in steps:
            found = list(chain.from_iterable(map(one, found, repeat(work))))
        yield from found

    return step


def _indexed(index: int) -> Step:
    def step(value: object, work: _Work) -> Iterator[object]:
        if isinstance(value, list) and -len(value) <= index < len(value):
            yield value[index]

    return step


def _sliced(part: slice) -> Step:
    """The items from start to stop, or nothing if one of both is outside of the list."""

    def step(value: object, work: _Work) -> Iterator[object]:
        if not isinstance(value, list):
            return
        start, stop = (
            at if at >= 0 else at + len(value)
            for at in (part.start or 0, len(value) if part.stop is None else part.stop)
        )
        if 0 <= start < stop <= len(value):
            yield from value[start : stop : part.step]

    return step


def _union(steps: list[Step]) -> Step:
    def step(value: object, work: _Work) -> Iterator[object]:
        for one in steps:
            yield from one(value, work)

    return step


def _nothing(value: object, work: _Work) -> Iterator[object]:
    return iter(())


def _everything(value: object, work: _Work) -> Iterator[object]:
    if isinstance(value, dict):
        yield from (value[key] for key in sorted(value))
    elif isinstance(value, list):
        yield from value


def _descend(value: object, work: _Work) -> Iterator[object]:
    left = [value]
    while left:
        one = left.pop()
        yield one
        left += reversed(list(_everything(one, work)))


def _filter(text: str) -> Step:
    parts = _COMPARISON.split(text, maxsplit=1)
    left = _operand(parts[0].strip())
    operator, right = (parts[1], _operand(parts[2].strip())) if len(parts) > 1 else ("", left)

    def step(value: object, work: _Work) -> Iterator[object]:
        for item in _items(value):
            work.left -= 1
            found = left(item, work)
            kept = _compare(found, operator, right(item, work)) if operator else bool(found)
            if work.left <= 0:
                return
            if kept:
                yield item

    return step


def _operand(text: str) -> _Operand:
    if text.startswith("@"):
        return parse(text[1:] or "$")._in_filter
    if found := _QUOTED.fullmatch(text):
        literal: object = found[1] if found[1] is not None else found[2]
    elif text in ("true", "false"):
        literal = text == "true"
    else:
        whole = parse_int64(text)
        literal = whole if whole is not None or not _NUMBER.fullmatch(text) else float(text)
        if literal is None or not isfinite(literal):
            raise FormatError(f"cannot parse filter operand {text[:64]}")
    return lambda value, work: [literal]


def _items(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _compare(left: list[object], operator: str, right: list[object]) -> bool:
    if len(left) != 1 or len(right) != 1:
        return False
    a, b = left[0], right[0]
    if operator in ("==", "!="):
        return (type(a) is type(b) and a == b) == (operator == "==")
    if isinstance(a, str) and isinstance(b, str):
        return _ordered(operator, (a > b) - (a < b))
    if isinstance(a, int | float) and isinstance(b, int | float):
        return _ordered(operator, (a > b) - (a < b))
    return False


def _ordered(operator: str, sign: int) -> bool:
    return {"<": sign < 0, "<=": sign <= 0, ">": sign > 0, ">=": sign >= 0}[operator]
