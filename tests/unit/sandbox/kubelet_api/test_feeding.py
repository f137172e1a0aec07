"""Keys of a terminal."""

import asyncio
from typing import Any

import pytest

from kcm_cli.sandbox.kubelet_api.feeding import _MOST_LINE, _Keys

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
    keys = _Keys(console)
    assert await keys.interrupts(asyncio.Event().wait())  # the end of the input ends it
    assert len(keys._waiting) == _MOST_LINE


async def test_an_interrupt_drops_the_keys_before_it() -> None:
    console: Any = Typing(1000, b"y\x03exit\n")
    keys = _Keys(console)
    assert await keys.interrupts(asyncio.Event().wait())
    assert bytes([key async for key in keys]) == b"exit\n"
