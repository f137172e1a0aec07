"""One hostile client as a process of its own: ``python -m tests.bench.flood KIND PORT SECONDS CONNECTIONS SOURCE...``.

It keeps CONNECTIONS connections open from the addresses SOURCE and opens another one for each that the server ends. It
runs at the lowest priority, so that on a machine with two cores it takes what the server and its other clients leave.
Prints one JSON line at its end: how many connections were opened and completed their handshake, and its CPU seconds.
"""

import asyncio
import json
import os
import random
import ssl
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from tests.kit.processes import insecure
from tests.trust.cases import LEAF, ROOT, sign

HEADER_BYTES = 400 << 10
SLOWLY_S = 10.0
DRIP_S = 1.0
_HEAD = b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: "
_HEAD_OF = b"GET %s HTTP/1.1\r\nHost: a\r\n"
_PART = b"x" * 16384
_MEGABYTE = b"x" * (1 << 20)
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


async def pipeline(connect: Connect) -> None:
    """Small anonymous requests, 20 at a time, to paths that are not open."""
    await _pipelined(connect, lambda: _HEAD_OF % b"/metrics" + b"\r\n")


async def tokens(connect: Connect) -> None:
    """The same with a random token each, 100 at a time."""
    await _pipelined(
        connect, lambda: _HEAD_OF % b"/metrics" + b"Authorization: Bearer %x\r\n\r\n" % random.getrandbits(64), 100
    )


async def large_tokens(connect: Connect) -> None:
    """A token of a megabyte in each request."""
    await _pipelined(
        connect,
        lambda: _HEAD_OF % b"/metrics" + b"Authorization: Bearer %x" % random.getrandbits(64) + _MEGABYTE + b"\r\n\r\n",
        1,
    )


async def paths(connect: Connect) -> None:
    """Requests to random paths of 9.7 kB."""
    await _pipelined(connect, lambda: _HEAD_OF % (b"/%x" % random.getrandbits(64) + b"x" * 9700) + b"\r\n", 5)


async def headers(connect: Connect) -> None:
    """Requests with 1,000 headers, 10 at a time."""
    await _pipelined(connect, lambda: _HEAD_OF % b"/metrics" + b"a:b\r\n" * 1000 + b"\r\n", 10)


async def upgrades(connect: Connect) -> None:
    """Upgrades to WebSockets."""
    await _pipelined(
        connect,
        lambda: (
            _HEAD_OF % b"/metrics" + b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\n\r\n"
        ),
        1,
    )


async def chains(connect: Connect) -> None:
    """Handshakes with 250 certificates."""
    context = insecure()
    context.load_cert_chain(_chain())
    _, writer = await connect(context)
    writer.transport.abort()


async def _pipelined(connect: Connect, request: Callable[[], bytes], at_once: int = 20) -> None:
    """Send requests, and read the answers, as fast as the server takes them."""
    reader, writer = await connect(insecure())

    async def send() -> None:
        while not reader.at_eof():
            writer.write(b"".join(request() for _ in range(at_once)))
            await writer.drain()
            await asyncio.sleep(0)  # drain does not wait for one that is lost

    sending = asyncio.ensure_future(send())
    try:
        while await reader.read(65536):
            pass
    finally:
        sending.cancel()
        writer.transport.abort()


@lru_cache(1)
def _chain() -> Path:
    issuer = sign(ROOT)
    every = [sign(replace(LEAF, name=f"client {number}", sans=()), issuer) for number in range(250)]
    path = Path(tempfile.mkdtemp()) / "chain.pem"
    path.write_bytes(b"".join(one.pem for one in every) + every[0].secret)
    return path


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
KINDS = {
    one.__name__: one
    for one in (
        *(fast, slow, loris, handshakes, hellos, silent, plain),
        *(pipeline, tokens, large_tokens, paths, headers, upgrades, chains),
    )
}


async def flood(kind: str, port: int, seconds: float, connections: int, sources: list[str]) -> Counter[str]:
    """Keep on for so many seconds."""
    counts: Counter[str] = Counter()
    ends = time.monotonic() + seconds

    async def connect(context: ssl.SSLContext | None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        counts["opened"] += 1
        source = sources[counts["opened"] % len(sources)]
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

    tasks = [asyncio.create_task(keep_on()) for _ in range(connections)]
    await asyncio.wait(tasks, timeout=seconds)
    for task in tasks:
        task.cancel()
    return counts


def main() -> None:
    """Flood, and say what was done."""
    kind, port, seconds, connections, *sources = sys.argv[1:]
    os.setpriority(os.PRIO_PROCESS, 0, 19)
    counts = asyncio.run(flood(kind, int(port), float(seconds), int(connections), sources))
    print(json.dumps({**counts, "cpu_s": round(time.process_time(), 2)}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
