"""Stacks as a gzipped pprof profile, which ``go tool pprof`` and flame graph viewers read.

Source: the message Profile in github.com/google/pprof, proto/profile.proto
"""

import gzip
from collections import Counter
from typing import Generic, TypeVar

import msgspec

from kcm_cli.machinery.protowire import numbered, packed, varint

K = TypeVar("K")


class Frame(msgspec.Struct, frozen=True):
    """A line of code in a function."""

    function: str
    file: str
    line: int


Stack = tuple[Frame, ...]
"""Innermost frame first."""


class _Table(Generic[K]):
    """Numbers items in the order in which they are first seen."""

    def __init__(self, first: int) -> None:
        self._first = first
        self.entries: dict[K, int] = {}

    def index(self, key: K) -> int:
        return self.entries.setdefault(key, len(self.entries) + self._first)


def encode_profile(
    samples: Counter[Stack], unit: tuple[str, str], *, period_ns: int = 0, duration_ns: int = 0
) -> bytes:
    """The encoded profile. ``unit``: what a sample counts, and its unit, such as ``("samples", "count")``."""
    strings, frames = _Table[str](0), _Table[Frame](1)
    strings.index("")
    body = bytearray()
    value_type = numbered(1, strings.index(unit[0])) + numbered(2, strings.index(unit[1]))
    body += packed(1, value_type)
    for stack, count in samples.items():
        places = b"".join(varint(frames.index(frame)) for frame in stack)
        body += packed(2, packed(1, places) + packed(2, varint(count)))
    for frame, number in frames.entries.items():
        line = numbered(1, number) + numbered(2, frame.line)
        body += packed(4, numbered(1, number) + packed(4, line))
        name, file = strings.index(frame.function), strings.index(frame.file)
        body += packed(5, numbered(1, number) + numbered(2, name) + numbered(4, file))
    if period_ns:
        body += numbered(10, duration_ns) + packed(11, value_type) + numbered(12, period_ns)
    for text in strings.entries:
        body += packed(6, text.encode())
    return gzip.compress(bytes(body), mtime=0)


def as_text(samples: Counter[Stack], title: str) -> str:
    """The profile as text, the most frequent stacks first."""
    lines = [f"{title}: total {sum(samples.values())}"]
    for stack, count in samples.most_common():
        lines.append(f"\n{count} @")
        lines.extend(f"#\t{frame.function}\t{frame.file}:{frame.line}" for frame in stack)
    return "\n".join(lines) + "\n"
