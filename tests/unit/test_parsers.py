"""Parsers of foreign bytes raise their documented errors only, in time in proportion to what they get.

The corpus of ``tests/fuzz`` is replayed, and each parser gets long texts of many units. A text that takes long is
compared with one of an eighth of its size.
"""

import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import pytest

from kcm_cli.machinery import jsonpath
from tests.fuzz import corpus
from tests.fuzz.measure import TooManySteps, allowed, measure
from tests.fuzz.targets import TARGETS, Target
from tests.fuzz.texts import PAIRS, UNITS
from tests.kit.growth import grows_linearly

SIZE = 8_000
"""Characters of a text: a quadratic parser in Python takes seconds for it."""
QUICK_S = 0.02
AROUND = (("", ""), ("a", "!"), ('"', "\n"))
"""What is before and after the units."""
BYTES, BYTES_PER_BYTE = 4_000_000, 20_000
"""Memory that an input may take, and what it may take more for each of its bytes."""
EACH = [pytest.param(name, id=name.replace("/", "-")) for name in TARGETS]
TIMED = [pytest.param(name, id=name.replace("/", "-")) for name, target in TARGETS.items() if target.timed]


@pytest.mark.parametrize("name", EACH)
def test_a_parser_refuses_what_it_cannot_read(name: str) -> None:
    target = TARGETS[name]
    for data in (*corpus.read(name), *corpus.failures(name)):
        measured = measure(target, data)
        if measured.error is not None:
            raise AssertionError(f"{data!r:.300}") from measured.error


@pytest.mark.parametrize("name", EACH)
def test_a_parser_takes_memory_in_proportion_to_the_text(name: str) -> None:
    target, inputs = TARGETS[name], corpus.read(name)
    for data in inputs:  # what is compiled at the first use stays
        _take(target, data)
    tracemalloc.start()
    try:
        for data in inputs:
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            _take(target, data)
            taken = tracemalloc.get_traced_memory()[1] - before
            assert taken <= BYTES + BYTES_PER_BYTE * len(data), f"{taken} bytes for {data!r:.300}"
    finally:
        tracemalloc.stop()


def _texts() -> Iterator[str]:
    for unit, (start, end) in product(UNITS, AROUND):
        yield f"{start}{unit * (SIZE // len(unit))}{end}"
    for left, right in PAIRS:
        count = SIZE // len(left + right)
        yield left * count + right * count


def _take(target: Target, data: bytes) -> float:
    """Seconds of CPU for an input. Only refusals may be raised."""
    started = time.process_time()
    try:
        target.parse(data)
    except target.refuses:
        pass
    return time.process_time() - started


def _shorter(data: bytes, size: int) -> bytes:
    """The input with its middle cut."""
    return data[: size // 2] + data[len(data) - size // 2 :]


@pytest.mark.parametrize("name", TIMED)
def test_a_parser_takes_time_in_proportion_to_the_text(name: str) -> None:
    target = TARGETS[name]
    for text in _texts():
        data = text.encode()
        if _take(target, data) > QUICK_S:
            linear = grows_linearly(lambda size: partial(_take, target, _shorter(data, size)), SIZE // 8)  # noqa: B023
            assert linear, f"{text[:40]!r} … {text[-10:]!r}"


def _endless(data: bytes) -> None:
    deep: object = []
    for _ in range(40):
        deep = [deep, deep]
    jsonpath.parse("..x").find(deep)


def _unexpected(data: bytes) -> None:
    raise KeyError(data)


@pytest.mark.parametrize(("parse", "error"), [(_endless, TooManySteps), (_unexpected, KeyError)])
def test_what_a_parser_may_not_do_is_found(parse: Callable[[bytes], None], error: type[BaseException]) -> None:
    measured = measure(Target(parse, (ValueError,)), b"a")
    assert isinstance(measured.error, error)
    assert measured.steps <= allowed(1) + 1
