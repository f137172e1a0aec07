"""A buffer of bytes between a connection and their reader."""

import asyncio

import pytest

from kcm_cli.sandbox.streams.pipe import Pipe


@pytest.mark.parametrize("size", [0, 3, 3 << 20, (3 << 20) + 1])
def test_all_bytes_up_to_a_limit(size: int) -> None:
    async def run() -> bytes | None:
        pipe = Pipe()

        async def write() -> None:
            for at in range(0, size, 1 << 20):
                await pipe.write(b"x" * min(1 << 20, size - at))
            pipe.end()

        found, _ = await asyncio.gather(pipe.all(3 << 20), write())
        return found

    assert asyncio.run(run()) == (b"x" * size if size <= 3 << 20 else None)
