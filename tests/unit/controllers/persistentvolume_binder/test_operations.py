"""Operations that run in the background, and the delay after a failure."""

import asyncio

from kcm_cli.component.clock import LoopClock
from kcm_cli.controllers.persistentvolume_binder.operations import Operations
from kcm_cli.rest.transport import TransportError


async def test_the_delay_doubles_until_the_operation_is_forgotten():
    clock = LoopClock()
    operations, started = Operations(clock, "binder"), []

    async def fail() -> None:
        started.append(round(clock.monotonic() - begin))
        raise OSError("no")

    begin = clock.monotonic()
    for second in range(20):
        if second == 18:
            operations.forget("a")
        operations.start("a", fail, unasked)
        await clock.sleep(1)
    assert started == [0, 1, 2, 4, 8, 16, 18, 19]


async def test_a_failure_of_what_was_forgotten_meanwhile_leaves_nothing():
    operations, going = Operations(LoopClock(), "binder"), asyncio.Event()

    async def fail() -> None:
        await going.wait()
        raise OSError("no")

    operations.start("a", fail, unasked)
    operations.start("b", fail, unasked)
    await asyncio.sleep(0)
    operations.forget("a")
    going.set()
    for _ in range(5):
        await asyncio.sleep(0)
    assert set(operations._backoff) == set(operations._again) == {"b"}


async def test_a_failed_request_is_repeated_when_its_delay_is_over():
    clock = LoopClock()
    operations, asked = Operations(clock, "binder"), list[float]()

    async def fail() -> None:
        raise TransportError("the connection was lost")

    for times in 1, 2:
        operations.start("a", fail, asked.append)
        await clock.sleep(0.1)
        assert len(asked) == times
        await clock.sleep(asked[-1] - 0.1)
    assert asked[0] < asked[1] < 2


def unasked(delay_s: float) -> None:
    """Of operations that fail for other reasons than a request."""
    raise AssertionError(delay_s)
