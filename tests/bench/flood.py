"""One hostile client as a process of its own: ``python -m tests.bench.flood KIND PORT SECONDS SOURCE``.

It keeps CONNECTIONS connections open from the address SOURCE and opens another one for each that the server ends. It
runs at the lowest priority, so that on a machine with two cores it takes what the server and its other clients leave.
Prints one JSON line at its end: how many connections were opened and completed their handshake, and its CPU seconds.
"""

import asyncio
import json
import os
import random
import ssl
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable

from tests.processes import insecure

CONNECTIONS = 500
HEADER_BYTES = 400 << 10
SLOWLY_S = 10.0
DRIP_S = 1.0
_HEAD = b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: "
_PART = b"x" * 16384
_LOST = (OSError, ssl.SSLError, TimeoutError, asyncio.IncompleteReadError)
Connect = Callable[[ssl.SSLContext | None], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


async def fast(connect: Connect) -> None:
    """A header of 400 KiB at once, never complete."""
    await _header(connect, 0.0)


async def slow(connect: Connect) -> None:
    """The same over ten seconds."""
    await _header(connect, SLOWLY_S)


async def loris(connect: Connect) -> None:
    """A short header each second, never complete."""
    reader, writer = await connect(insecure())
    writer.write(_HEAD + b"\r\n")
    while not reader.at_eof() and not writer.is_closing():
        await asyncio.wait([asyncio.ensure_future(reader.read(1024))], timeout=DRIP_S)
        writer.write(b"Y: y\r\n")


async def handshakes(connect: Connect) -> None:
    """Whole handshakes, and nothing after them."""
    _, writer = await connect(insecure())
    writer.transport.abort()


async def hellos(connect: Connect) -> None:
    """The first message of a handshake, and nothing after it."""
    reader, writer = await connect(None)
    writer.write(HELLO)
    await reader.read(1)  # the server has done its part
    writer.transport.abort()


async def silent(connect: Connect) -> None:
    """No byte at all."""
    reader, _ = await connect(None)
    await reader.read()


async def plain(connect: Connect) -> None:
    """HTTP without TLS."""
    reader, writer = await connect(None)
    writer.write(_HEAD + b"x\r\n\r\n")
    await reader.read()
    writer.transport.abort()


async def _header(connect: Connect, over_s: float) -> None:
    reader, writer = await connect(insecure())
    writer.write(_HEAD)
    parts = HEADER_BYTES // len(_PART)
    for _ in range(parts):
        writer.write(_PART)
        await writer.drain()
        if over_s:
            await asyncio.sleep(over_s / parts)
    await reader.read()
    writer.transport.abort()


def _hello() -> bytes:
    outgoing = ssl.MemoryBIO()
    tls = insecure().wrap_bio(ssl.MemoryBIO(), outgoing)
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


HELLO = _hello()
KINDS = {one.__name__: one for one in (fast, slow, loris, handshakes, hellos, silent, plain)}


async def flood(kind: str, port: int, seconds: float, source: str) -> Counter[str]:
    """Keep on for so many seconds."""
    counts: Counter[str] = Counter()
    ends = time.monotonic() + seconds

    async def connect(context: ssl.SSLContext | None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        counts["opened"] += 1
        there = await asyncio.open_connection(
            "127.0.0.1", port, ssl=context, local_addr=(source, 0), ssl_handshake_timeout=seconds if context else None
        )
        counts["handshakes"] += context is not None
        return there

    async def keep_on() -> None:
        await asyncio.sleep(random.random())
        while time.monotonic() < ends:
            try:
                await KINDS[kind](connect)
            except _LOST:
                counts["lost"] += 1
                await asyncio.sleep(0.01)

    tasks = [asyncio.create_task(keep_on()) for _ in range(CONNECTIONS)]
    await asyncio.wait(tasks, timeout=seconds)
    for task in tasks:
        task.cancel()
    return counts


def main() -> None:
    """Flood, and say what was done."""
    kind, port, seconds, source = sys.argv[1:]
    os.setpriority(os.PRIO_PROCESS, 0, 19)
    counts = asyncio.run(flood(kind, int(port), float(seconds), source))
    print(json.dumps({**counts, "cpu_s": round(time.process_time(), 2)}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
