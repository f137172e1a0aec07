"""Keys of a terminal, and commands that say how much input they read."""

import asyncio
from typing import Any

import pytest

from kcm_cli.sandbox.kubelet_api.feeding import _COUNTED, _MOST_LINE, _Keys

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


@pytest.mark.parametrize(
    ("script", "size"),
    [
        ("head -c 9", "9"),
        ("mkdir -p '/a b' && head -c 9 > '/a b/c'", "9"),
        ("head -c 9 | tar -xmf - -C /", "9"),
        ("exec 3>&1; mkdir -p /a && head -c 9 > /a/b", "9"),
        ("""mkdir -p '/a (1)' && head -c 9 > '/a (1)/it'"'"'s;'""", "9"),
        ('head -c 9 > "$(cat)"', None),
        ("head -c 9; cat", None),
        ("head -c 9 && cat", None),
        ("head -c 9 > /a; head -c 9 > /b", None),
        ("head -c 9 > /$(cat)", None),
        ("head -c 9 /d/f", None),
        ("head -c $N", None),
        ("mkdir -p `cat` && head -c 9", None),
    ],
)
def test_what_clients_run_that_cannot_close_the_input(script: str, size: str | None) -> None:
    found = _COUNTED.fullmatch(script)
    assert (None if found is None else found[1]) == size
