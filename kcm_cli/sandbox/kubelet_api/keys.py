"""What a user types on a terminal."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Coroutine

from kcm_cli.runtime.turns import Turns
from kcm_cli.sandbox.streams.remote import Console

MOST_LINE = 1 << 16
"""The limit for a line, in bytes."""
INTERRUPTED = 130
"""The exit code of a command that the interrupt key has ended."""
_INTERRUPT, _END, _ESCAPE = 3, 4, 27
_ERASE, _ENTER = (8, 127), (10, 13)


class Keys:
    """The bytes that a terminal sends, without the escape sequences of other keys. ``ended``: there are no more."""

    def __init__(self, console: Console) -> None:
        self.ended = False
        self._console = console
        self._waiting: deque[int] = deque()

    async def __aiter__(self) -> AsyncIterator[int]:
        escaped, turns = False, Turns.of_loop()
        while True:
            await turns.step()  # what is pasted comes at once
            while not self._waiting:
                if self.ended:
                    return
                data = await self._console.stdin.read()
                self.ended = not data
                self._waiting += data
            key = self._waiting.popleft()
            if key == _ESCAPE:
                escaped = True
            elif not escaped:
                yield key
            elif key not in b"[O0123456789;":
                escaped = False

    async def lines(self) -> AsyncIterator[bytes | None]:
        """Each line, with an echo and erasure; None for the interrupt key. The key for the end of the input ends them
        where a line begins."""
        line, write = bytearray(), self._console.write
        async for key in self:
            if key in _ENTER:
                await write(b"\r\n")
                yield bytes(line) + b"\n"
                line.clear()
            elif key in _ERASE:
                if line:
                    kept = line.decode("utf-8", "surrogateescape")[:-1]
                    line[:] = kept.encode("utf-8", "surrogateescape")
                    await write(b"\b \b")
            elif key == _INTERRUPT:
                line.clear()
                await write(b"^C\r\n")
                yield None
            elif key == _END:
                if not line:
                    return
            elif key >= 32 or key == 9:
                line.append(key)
                await write(bytes([key]))
                if len(line) > MOST_LINE:
                    line.clear()

    async def interrupts(self, work: Coroutine[object, object, object], *, by_end: bool = True) -> bool:
        """Wait for work, or until the interrupt key ends it, or (``by_end``) the end of the input; returns whether that
        happened. Other keys are kept for later, as many as a line has."""
        task = asyncio.ensure_future(work)
        try:
            while not task.done() and not self.ended:
                reading = asyncio.ensure_future(self._console.stdin.read())
                await asyncio.wait((task, reading), return_when=asyncio.FIRST_COMPLETED)
                if not reading.done():
                    reading.cancel()
                    await asyncio.wait((reading,))
                data = b"" if reading.cancelled() else reading.result()
                self.ended = not data and not reading.cancelled()
                if _INTERRUPT in data:
                    self._waiting.clear()  # as terminals do
                    self._keep(data.rpartition(bytes([_INTERRUPT]))[2])
                    await self._console.write(b"^C\r\n")
                    return True
                self._keep(data)
            if task.done() or not by_end:
                await task
            return not task.done()
        finally:
            task.cancel()
            await asyncio.wait((task,))

    def _keep(self, data: bytes) -> None:
        self._waiting += data[: max(0, MOST_LINE - len(self._waiting))]
