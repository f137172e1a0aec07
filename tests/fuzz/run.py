"""``python -m tests.fuzz.run --seconds 600``: mutates the corpus of each parser, and prints each failure once.

What reaches new lines of kcm is kept, the smallest inputs first, and so are inputs that failed. ``--only WORD``: of
the parsers whose names have it. ``--seed``: of the mutations. Commit what has changed under ``tests/fuzz/corpus``.
"""

import argparse
import os
import random
import sys
import time
import traceback
from collections.abc import Iterable
from typing import Any

from tests.fuzz import corpus
from tests.fuzz.measure import Measured, TooManySteps, measure
from tests.fuzz.targets import TARGETS, Target
from tests.fuzz.texts import PAIRS, UNITS
from tests.unit.sandbox.fuzz.junk import SPOILED, TEXTS

ROUNDS = 4
"""Each parser gets its time in so many parts, so that an early end leaves none out."""
WORDS = tuple(
    dict.fromkeys(
        word.encode(errors="surrogatepass")
        for word in (*UNITS, *(side for pair in PAIRS for side in pair), *(text for text in TEXTS if len(text) < 300))
    )
) + tuple(data for data in SPOILED if len(data) < 300)
_REPEATED = (2, 3, 8, 60, 300)


def mutated(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """The input with one to four changes. other: a second one, to take parts from."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        start = rng.randrange(len(data) + 1)
        end = min(len(data), start + rng.choice((0, 1, 1, 2, 4, 16, len(data))))
        match rng.randrange(8):
            case 0:
                middle = bytes([rng.randrange(256)])
            case 1:
                middle = b""
            case 2 | 3:
                middle, end = rng.choice(WORDS), rng.choice((start, end))
            case 4:
                middle = data[start:end] * rng.choice(_REPEATED)
            case 5:
                at = rng.randrange(len(other) + 1)
                middle = other[at : at + rng.choice((1, 4, 16, 64))]
            case 6:
                middle = bytes(byte ^ (1 << rng.randrange(8)) for byte in data[start:end][:4])
                end = min(end, start + 4)
            case _:
                number = rng.choice((0, 1, -1, 255, 2**31, 2**63, -(2**63), 10**30, rng.randrange(1000)))
                middle = str(number).encode()
        data = data[:start] + middle + data[end:]
    return data[:4000]


class Hunt:
    """The search in one parser. found: its failures, by where they were raised."""

    def __init__(self, name: str, target: Target, rng: random.Random) -> None:
        self.name, self.goes, self.most = name, 0, 0.0
        self.found: dict[tuple[Any, ...], tuple[bytes, BaseException]] = {}
        self._target, self._rng = target, rng
        self._kept: list[tuple[bytes, Measured]] = []
        self._seen: set[Any] = set()
        known = corpus.read(name)
        for data in (*(known or WORDS), *corpus.failures(name)):
            self.take(data)

    def take(self, data: bytes) -> None:
        """Try an input, and keep it if it reaches something new."""
        self.goes += 1
        measured = measure(self._target, data)
        error = measured.error
        if error is not None:
            last = traceback.extract_tb(error.__traceback__)[-1]
            where = (type(error), last.filename, last.name, "" if isinstance(error, TooManySteps) else last.line)
            known = self.found.get(where)
            if known is None or len(known[0]) > len(data):
                self.found[where] = (data, error)
            return
        self.most = max(self.most, measured.steps / (len(data) + 30))
        if not measured.lines <= self._seen:
            self._seen |= measured.lines
            self._kept.append((data, measured))

    def go(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            inputs = self._kept or [(b"", measure(self._target, b""))]
            self.take(mutated(self._rng, self._rng.choice(inputs)[0], self._rng.choice(inputs)[0]))

    def smallest(self) -> list[bytes]:
        """The inputs that reach all that was reached, by the smallest ones."""
        return list(_needed((data, one.lines) for data, one in self._kept if len(data) <= corpus.LONGEST))


def _needed(kept: Iterable[tuple[bytes, Any]]) -> Iterable[bytes]:
    seen: set[Any] = set()
    count = 0
    for data, lines in sorted(kept, key=lambda one: (len(one[0]), one[0])):
        if count < corpus.MOST and not lines <= seen:
            seen |= lines
            count += 1
            yield data


def main() -> int:
    """Returns the exit code: 1 after failures."""
    given = argparse.ArgumentParser()
    given.add_argument("--seconds", type=float, default=60.0)
    given.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)))
    given.add_argument("--only", default="")
    chosen = given.parse_args()
    rng = random.Random(chosen.seed)
    hunts = [Hunt(name, target, rng) for name, target in TARGETS.items() if chosen.only in name]
    for _ in range(ROUNDS):
        for hunt in hunts:
            hunt.go(chosen.seconds / ROUNDS / len(hunts))
    for hunt in hunts:
        corpus.write(hunt.name, hunt.smallest())
        for data, error in hunt.found.values():
            corpus.add_failure(hunt.name, data)
            print(f"=== {hunt.name}: {data!r:.2000}")
            traceback.print_exception(error, limit=-6, file=sys.stdout)
    steps = ", ".join(f"{hunt.name} {hunt.most:.0f}" for hunt in sorted(hunts, key=lambda one: -one.most)[:5])
    failures = sum(len(hunt.found) for hunt in hunts)
    print(f"seed {chosen.seed}: {sum(hunt.goes for hunt in hunts)} inputs, {failures} kinds of failure")
    print(f"most steps for a byte: {steps}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
