"""Stacks as a gzipped pprof profile, which ``go tool pprof`` and flame graph viewers read.

Only what such a profile needs of protocol buffers is written here: varints and length-prefixed fields.

Source: the message Profile in github.com/google/pprof, proto/profile.proto
"""

import gzip
from collections import Counter
from dataclasses import dataclass
from typing import Generic, TypeVar

K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Frame:
    """A line of code in a function."""

    function: str
    file: str
    line: int


Stack = tuple[Frame, ...]
"""Innermost frame first."""


class _Table(Generic[K]):
    """Numbers things in the order in which they are first met."""

    def __init__(self, first: int) -> None:
        self._first = first
        self.entries: dict[K, int] = {}

    def index(self, key: K) -> int:
        return self.entries.setdefault(key, len(self.entries) + self._first)


def encode_profile(
    samples: Counter[Stack], unit: tuple[str, str], *, period_ns: int = 0, duration_ns: int = 0
) -> bytes:
    """``unit``: what a sample counts and in what (``("samples", "count")``)."""
    strings, frames = _Table[str](0), _Table[Frame](1)
    strings.index("")
    body = bytearray()
    value_type = _varint_field(1, strings.index(unit[0])) + _varint_field(2, strings.index(unit[1]))
    body += _field(1, value_type)
    for stack, count in samples.items():
        places = b"".join(_varint(frames.index(frame)) for frame in stack)
        body += _field(2, _field(1, places) + _field(2, _varint(count)))
    for frame, number in frames.entries.items():
        line = _varint_field(1, number) + _varint_field(2, frame.line)
        body += _field(4, _varint_field(1, number) + _field(4, line))
        name, file = strings.index(frame.function), strings.index(frame.file)
        body += _field(5, _varint_field(1, number) + _varint_field(2, name) + _varint_field(4, file))
    if period_ns:
        body += _varint_field(10, duration_ns) + _field(11, value_type) + _varint_field(12, period_ns)
    for text in strings.entries:
        body += _field(6, text.encode())
    return gzip.compress(bytes(body), mtime=0)


def as_text(samples: Counter[Stack], title: str) -> str:
    """The same for people: most frequent stacks first."""
    lines = [f"{title}: total {sum(samples.values())}"]
    for stack, count in samples.most_common():
        lines.append(f"\n{count} @")
        lines.extend(f"#\t{frame.function}\t{frame.file}:{frame.line}" for frame in stack)
    return "\n".join(lines) + "\n"


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _varint_field(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content
