"""The outcome of a simulated command: its end, exit code, output and files."""

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from kcm_cli.sandbox.programs.filesystem import Files

_MOST_ITERATIONS, _MOST_LINES, _MANY = 1000, 20_000, 1e15


def cut(text: str, most: int, *, from_end: bool = False) -> str:
    """The first or last ``most`` bytes of an output, as text."""
    data = text.encode("utf-8", "surrogateescape")
    data = data[-most:] if from_end else data[:most]
    return data.decode("utf-8", "replace")


class Written(NamedTuple):
    """Output, and seconds from the start of the command. Bytes that are not UTF-8 are surrogates."""

    at_s: float
    text: str
    error: bool = False


class Opened(msgspec.Struct, frozen=True):
    """A shell on a terminal: its words, and its working directory and variables; by default those of its container."""

    words: tuple[str, ...]
    folder: str = ""
    env: Mapping[str, str | None] | None = None


class Execution(msgspec.Struct, frozen=True):
    """Seconds until the command ends (infinite: not by itself), its exit code, and the files at its end."""

    lasts_s: float
    code: int
    files: Files = msgspec.field(default_factory=dict)
    output: tuple[Written, ...] = ()
    gone: frozenset[str] = frozenset()
    """The files that it has removed."""
    stages: tuple[tuple[float, Files, frozenset[str]], ...] = ()
    """Seconds from the start, and the files and removed files from then on; empty if that is unknown."""
    repeated: tuple[int, float] = (0, 0.0)
    """The end of the output that an endless loop repeats: its first index, and the period; 0: there is none."""
    is_cut: bool = False
    """Whether it would do more after the time until which it was simulated."""
    output_known: bool = True
    """Whether ``output`` is all of its output."""
    signals: tuple[tuple[float, str], ...] = ()
    """Seconds from the start, and the signals that it sends to the first process of its container."""
    shell: Opened | None = None
    """The shell that it starts last on its terminal."""
    problem: str = ""
    """Why it, or the rest of it, cannot be simulated; empty if it can."""

    def written(self, until_s: float) -> Iterator[Written]:
        """The output until a time, of an endless loop the last thousand iterations, fewer where they are long. The
        others go on."""
        first, period_s = self.repeated
        again = self.output[first:]
        yield from self.output
        if period_s and again:
            count = int(min((until_s - again[0].at_s) / period_s, _MANY))
            for number in range(max(1, count - self._kept()), count + 1):
                for each in again:
                    yield each._replace(at_s=each.at_s + number * period_s)

    def kept_s(self) -> float:
        """How far back ``written`` has all output: infinite, but for an endless loop."""
        first, period_s = self.repeated
        return self._kept() * period_s if period_s and self.output[first:] else math.inf

    def _kept(self) -> int:
        """How many of the last iterations are known."""
        lines = sum(each.text.count("\n") for each in self.output[self.repeated[0] :])
        return max(1, min(_MOST_ITERATIONS, _MOST_LINES // max(1, lines)))
