"""A buffer of bytes between a connection and their reader."""

import asyncio
from collections.abc import Callable, Iterator

PART = 32 * 1024
"""The most bytes that are copied at once, as by kubelets. Clients limit the size of a message."""
_MOST_BYTES = 1 << 20


def parts(data: bytes) -> Iterator[bytes]:
    """The bytes in parts of up to ``PART``; none without bytes."""
    return (data[at : at + PART] for at in range(0, len(data), PART))


def send_replies(replies: bytearray, write: Callable[[bytes], None]) -> None:
    """Send what the protocol of a connection has to answer, which is then empty."""
    if replies:
        write(bytes(replies))
        replies.clear()


class Pipe:
    """One writer, one reader. A writer waits while a megabyte is unread."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._ended = False
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    async def write(self, data: bytes) -> None:
        """Add bytes."""
        await self._room.wait()
        if data and not self._ended:
            self._parts.append(data)
            self._size += len(data)
            if self._size >= _MOST_BYTES:
                self._room.clear()
            self._changed.set()

    def end(self) -> None:
        """End the stream."""
        self._ended = True
        self._room.set()
        self._changed.set()

    async def read(self) -> bytes:
        """All buffered bytes, when there are any; empty at the end of the stream."""
        while not self._parts and not self._ended:
            self._changed.clear()
            await self._changed.wait()
        found = b"".join(self._parts)
        self._parts, self._size = [], 0
        self._room.set()
        return found

    async def all(self, most: int) -> bytes | None:
        """All bytes until the end; None if there are more than that, which are read and not kept."""
        found, size = bytearray(), 0
        while data := await self.read():
            size += len(data)
            if size > most:
                found.clear()
            else:
                found += data
        return bytes(found) if size <= most else None
