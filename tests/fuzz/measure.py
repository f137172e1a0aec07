"""What a parser does with one input: its error, the lines that it runs, and how many.

Steps are lines and calls of kcm, so they are the same on each machine. What libraries do is not counted:
``tests/unit/test_parsers.py`` times all of it.
"""

import sys
from collections.abc import Set
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

import kcm_cli
from tests.fuzz.targets import Target

_PACKAGE = str(Path(kcm_cli.__file__).parent)
STEPS, STEPS_PER_BYTE = 40_000, 1_500
"""An input may take so many steps, and so many more for each byte."""
FIRST_USE = 1_500_000
"""What a parser may take more when it is used for the first time: types, options and messages are compiled then."""


class TooManySteps(BaseException):
    """The input takes more steps than it may. No parser catches it."""


class Measured(msgspec.Struct):
    """error: one that is not documented. lines: pairs of lines of kcm that ran one after the other."""

    error: BaseException | None
    lines: Set[tuple[Any, ...]]
    steps: int


def allowed(size: int) -> int:
    """The steps for an input of so many bytes."""
    return STEPS + STEPS_PER_BYTE * size


class _Tracer:
    def __init__(self, most: int) -> None:
        self.lines: set[tuple[Any, ...]] = set()
        self.steps = 0
        self._most = most

    def call(self, frame: FrameType, event: str, arg: object) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(_PACKAGE):
            return None
        self._step()
        before, add, most = 0, self.lines.add, self._most

        def line(frame: FrameType, event: str, arg: object) -> Any:
            nonlocal before
            if event == "line":
                self.steps += 1
                add((code, before, frame.f_lineno))
                before = frame.f_lineno
                if self.steps > most:
                    raise TooManySteps
            return line

        return line

    def _step(self) -> None:
        self.steps += 1
        if self.steps > self._most:
            raise TooManySteps


def measure(target: Target, data: bytes) -> Measured:
    """Parse an input. What takes too many steps is tried again, since some of them are compiled at the first use."""
    most = allowed(len(data))
    first = _measure(target, data, most)
    if not isinstance(first.error, TooManySteps):
        return first
    again = _measure(target, data, most + FIRST_USE)
    return first if isinstance(again.error, TooManySteps) else _measure(target, data, most)


def _measure(target: Target, data: bytes, most: int) -> Measured:
    tracer = _Tracer(most)
    error: BaseException | None = None
    before = sys.gettrace()
    sys.settrace(tracer.call)
    try:
        target.parse(data)
    except target.refuses:
        pass
    except (Exception, TooManySteps) as raised:  # noqa: BLE001 - it is what is looked for
        error = raised
    finally:
        sys.settrace(before)
    return Measured(error, tracer.lines, tracer.steps)
