"""A loop on another thread shares the time of a sandbox: timers are in order, and time waits for bytes in transit."""

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest

from kcm_cli.testing.following import FollowingLoop, under_way
from kcm_cli.testing.warp import Stalled, WarpLoop
from tests.kit.warp_loops import running_loop

pytestmark = pytest.mark.real_time


@pytest.fixture
def loop() -> Iterator[WarpLoop]:
    with running_loop() as made:
        yield made


@contextlib.contextmanager
def followed(loop: WarpLoop, work: Coroutine[Any, Any, None]) -> Iterator[FollowingLoop]:
    """Run a coroutine on a follower, until the block ends."""
    follower = loop.follower()
    task: list[asyncio.Task[None]] = []
    begun = threading.Event()

    async def main() -> None:
        task.append(asyncio.ensure_future(work))
        begun.set()
        with contextlib.suppress(asyncio.CancelledError):
            await task[0]

    def run() -> None:
        follower.run_until_complete(main())
        follower.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    begun.wait()
    yield follower
    with contextlib.suppress(RuntimeError):
        follower.call_soon_threadsafe(task[0].cancel)
    thread.join()


def test_timers_of_both_loops_run_in_the_order_of_their_times(loop: WarpLoop) -> None:
    seen: list[str] = []

    async def ticks(name: str, first: float) -> None:
        await asyncio.sleep(first)
        while True:
            seen.append(name)
            await asyncio.sleep(10)

    asyncio.run_coroutine_threadsafe(ticks("lead", 5), loop)
    with followed(loop, ticks("follower", 10)):
        loop.advance(3600)
    assert 358 <= seen.count("follower") <= 360
    assert not any(a == b for a, b in zip(seen[1:], seen[2:], strict=False))


def test_time_waits_for_answers_and_for_threads(loop: WarpLoop) -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    taken: list[float] = []

    async def answer() -> None:
        with theirs:
            while data := await loop.sock_recv(theirs, 10):
                await asyncio.to_thread(time.sleep, 0.001)
                await loop.sock_sendall(theirs, data)

    async def ask() -> None:
        own = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(60)
            before = own.time()
            await own.sock_sendall(ours, b"x")
            await own.sock_recv(ours, 10)
            await asyncio.to_thread(time.sleep, 0.001)
            taken.append(own.time() - before)

    answering = asyncio.run_coroutine_threadsafe(answer(), loop)
    with followed(loop, ask()):
        loop.advance(50 * 60 + 30)
    ours.close()
    answering.result(10)
    assert len(taken) == 50
    assert max(taken) < 60  # none of the other's minutes


def test_a_closed_follower_does_not_block_time(loop: WarpLoop) -> None:
    with followed(loop, asyncio.sleep(5)):
        loop.advance(10)
    loop.advance(3600)


def test_a_follower_that_is_never_idle_is_reported(loop: WarpLoop) -> None:
    async def busy() -> None:
        while True:
            await asyncio.sleep(0)

    with followed(loop, busy()), pytest.raises(Stalled, match=r"operator is never idle.*: it is in .*10 s are left"):
        loop.advance(10, stalled_s=0.2)


def test_what_blocks_a_follower_is_named_by_its_line(loop: WarpLoop) -> None:
    done = threading.Event()

    async def blocking() -> None:
        while not done.wait(0.001):
            pass

    with followed(loop, blocking()):
        with pytest.raises(Stalled, match=r"it is in blocking \(.*test_following\.py:\d+\); 10 s are left"):
            loop.advance(10, stalled_s=0.05)
        done.set()


def test_a_sleeping_follower_has_real_time_after_an_advance(loop: WarpLoop) -> None:
    done = threading.Event()

    async def later() -> None:
        await asyncio.sleep(100)
        done.set()

    with followed(loop, later()):
        loop.advance(99.9)
        assert done.wait(10)


async def test_sent_bytes_are_distinguished_from_unread_ones() -> None:
    """Sent bytes may be acknowledged 40 ms later: time does not wait for that."""
    loop = asyncio.get_running_loop()
    written: asyncio.Future[asyncio.StreamWriter] = loop.create_future()
    server = await asyncio.start_server(lambda _, writer: written.set_result(writer), "127.0.0.1", 0)
    with socket.create_connection(server.sockets[0].getsockname()) as reader:
        writer = await written
        for _ in range(5):  # as many as the peer need not acknowledge
            writer.write(b"x")
            assert not any(unsent for _, _, unsent in under_way(loop))
        writer.write(b"x" * 50_000_000)
        assert any(unsent for _, _, unsent in under_way(loop))
        left = 50_000_005
        while left:
            left -= len(await asyncio.to_thread(reader.recv, 1 << 20))
        await writer.drain()
        writer.close()
        await writer.wait_closed()
    server.close()
