"""Keys of a terminal."""

import asyncio
import time
from itertools import count
from typing import Any

import pytest

from kcm_cli.sandbox.kubelet_api.attached import echoed
from kcm_cli.sandbox.kubelet_api.keys import MOST_LINE, Keys
from kcm_cli.sandbox.streams.remote import Wanted

pytestmark = pytest.mark.real_time


class Typing:
    """A console whose user types as fast as it is read, and in the end something else."""

    def __init__(self, parts: int, last: bytes) -> None:
        self.stdin = self
        self.parts, self.last = parts, last

    async def read(self) -> bytes:
        self.parts -= 1
        if self.parts < 0:
            return b""
        return b"x" * 16384 if self.parts else self.last

    async def write(self, data: bytes, *, error: bool = False) -> None:
        pass


async def test_keys_that_are_typed_while_a_command_runs_are_bounded() -> None:
    console: Any = Typing(1000, b"x")
    keys = Keys(console)
    assert await keys.interrupts(asyncio.Event().wait())  # the end of the input ends it
    assert len(keys._waiting) == MOST_LINE


async def test_an_interrupt_drops_the_keys_before_it() -> None:
    console: Any = Typing(1000, b"y\x03exit\n")
    keys = Keys(console)
    assert await keys.interrupts(asyncio.Event().wait())
    assert bytes([key async for key in keys]) == b"exit\n"


class Typed:
    """A console on which this was typed."""

    wanted = Wanted(stdin=True, stdout=True, stderr=True, tty=True)

    def __init__(self, *parts: bytes) -> None:
        self.stdin = self
        self.parts, self.shown = [*parts, b""], b""

    async def read(self) -> bytes:
        return self.parts.pop(0)

    async def write(self, data: bytes, *, error: bool = False) -> None:
        self.shown += data


@pytest.mark.parametrize(
    ("typed", "is_first", "shown", "code"),
    [
        ((b"a\r", b"b", b"c\r\x04d\r"), False, b"a\r\na\r\nbc\r\nbc\r\n", 0),
        ((b"a\xc3\xa9\x7f\r",), False, b"a\xc3\xa9\b \b\r\na\r\n", 0),
        ((b"a\x04\r",), False, b"a\r\na\r\n", 0),
        ((b"a\x03b\r",), False, b"a^C\r\n", 130),
        ((b"a\x03b\r",), True, b"a^C\r\nb\r\nb\r\n", 0),
    ],
)
async def test_cat_on_a_terminal(typed: tuple[bytes, ...], is_first: bool, shown: bytes, code: int) -> None:
    console: Any = Typed(*typed)
    over = await echoed(console, is_first=is_first)
    assert (console.shown, over["status"]) == (shown, "Failure" if code else "Success")
    assert str(code) in str(over) or not code


async def test_what_is_pasted_is_echoed_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock is a millisecond later."""
    looks, others = count(), 0

    async def other_work() -> None:
        nonlocal others
        while True:
            others += 1
            await asyncio.sleep(0)

    monkeypatch.setattr(time, "perf_counter", lambda: next(looks) / 1000)
    working = asyncio.create_task(other_work())
    console: Any = Typed(b"x" * 1000 + b"\r")
    assert [line async for line in Keys(console).lines()] == [b"x" * 1000 + b"\n"]
    working.cancel()
    assert others > 50
