"""The results of a sync: done, requeued, retried, dropped; and its logs."""

import asyncio
import logging
import time
from collections.abc import Iterator
from itertools import pairwise

import pytest

from kcm_cli.component import virtual
from kcm_cli.component.clock import LoopClock
from kcm_cli.component.logs import V2, V5, fields_of
from kcm_cli.engine.worker import SYNC_FAILED, Failures, Logged, Pending, Worker, unhandled
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.kref import KRef
from kcm_cli.rest.errors import ApiError, Conflict, NotFound, TooManyRequests
from kcm_cli.rest.mapper import NoMatch
from kcm_cli.rest.transport import ConnectionLost
from kcm_cli.runtime.cause_ring import CauseRing, Later
from kcm_cli.runtime.turns import TURN_S
from kcm_cli.runtime.workqueue import WorkQueue
from tests.kit.world import EPOCH


class Known(Exception):
    """One that says what it is."""

    reason = "Known"


def times(
    outcomes: Iterator[object],
    seconds: float,
    retries: int | None = None,
    lines: Failures = SYNC_FAILED,
    ring: CauseRing | None = None,
) -> list[float]:
    """When (virtual seconds) a key is synced, while its syncs end like this: a number, None or an error."""

    async def main() -> list[float]:
        clock = LoopClock(EPOCH)
        queue = WorkQueue("q", clock)
        seen: list[float] = []

        async def sync(key: str) -> float | None:
            seen.append(round(asyncio.get_running_loop().time(), 3))
            outcome = next(outcomes)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome  # type: ignore[return-value]

        worker = Worker(controller="c", queue=queue, sync=sync, clock=clock, retries=retries, failures=lines, ring=ring)
        task = asyncio.create_task(worker.run())
        queue.add("key")
        await asyncio.sleep(seconds)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return seen

    return virtual.run(main())


LOST, WRONG = ConnectionLost("gone"), ValueError("wrong")
BUSY = TooManyRequests(429, "TooManyRequests", "", retry_after_s=3.0)


@pytest.mark.parametrize(
    ("outcomes", "retries", "expected"),
    [
        pytest.param([None], None, [0], id="done"),
        pytest.param([5.0, None], None, [0, 5], id="looked at again"),
        pytest.param([LOST, LOST, None], None, [0, 0.005, 0.015], id="tried again, later each time"),
        pytest.param([WRONG, None], None, [0, 0.005], id="whatever the error"),
        pytest.param([LOST, 5.0, LOST, None], None, [0, 0.005, 5.005, 5.01], id="success forgets the failures"),
        pytest.param(
            [LOST] * 9 + [None], None, [0, *(round(0.005 * (2**n - 1), 3) for n in range(1, 10))], id="for ever"
        ),
        pytest.param([LOST], 0, [0], id="given up at once"),
        pytest.param([LOST] * 3, 2, [0, 0.005, 0.015], id="given up"),
        pytest.param([BUSY, BUSY, None], None, [0, 0.005, 0.015], id="also if the server says when"),
        pytest.param([BUSY] * 3, 2, [0, 0.005, 0.015], id="given up, though the server says when"),
    ],
)
def test_requeues_of_a_key(outcomes: list[object], retries: int | None, expected: list[float]) -> None:
    assert times(iter(outcomes), 30, retries) == expected


@pytest.mark.parametrize(
    ("error", "level", "traced"),
    [
        pytest.param(Conflict(409, "Conflict", ""), V2, False, id="the object moved on"),
        pytest.param(NotFound(404, "NotFound", ""), V2, False, id="gone"),
        pytest.param(ApiError(500, "InternalError", ""), logging.ERROR, False, id="the server's"),
        pytest.param(Known("x"), logging.ERROR, False, id="one that is known"),
        pytest.param(NoMatch("kind X"), logging.ERROR, False, id="a kind that is not served"),
        pytest.param(Pending("x"), V5, False, id="one that only waits"),
        pytest.param(LOST, logging.ERROR, False, id="no connection"),
        pytest.param(FormatError("x"), logging.ERROR, False, id="an object that cannot be used"),
        pytest.param(OSError("x"), logging.ERROR, False, id="the system's"),
        pytest.param(WRONG, logging.ERROR, True, id="one of ours"),
    ],
)
def test_logs_of_a_sync(caplog: pytest.LogCaptureFixture, error: Exception, level: int, traced: bool) -> None:
    caplog.set_level(1, "kcm_cli.engine.worker")
    times(iter([error, None]), 1)
    (record,) = [record for record in caplog.records if "Sync failed" in record.message]
    assert (record.levelno, record.exc_info is not None) == (level, traced)
    assert record.fields.get("logger") == ("UnhandledError" if level == logging.ERROR else None)  # type: ignore[attr-defined]


LINES = Failures(
    retried="Error syncing thing", level=V2, dropped="Dropping thing", dropped_level=logging.INFO, key="thing", ref=True
)


def test_failures_are_logged_as_the_queue_declares(caplog: pytest.LogCaptureFixture) -> None:
    """The levels and keys of upstream; a key that is given up has an error, whatever the level of its own line."""
    caplog.set_level(1, "kcm_cli.engine.worker")
    times(iter([LOST, WRONG, LOST]), 2, 2, LINES)
    lines = [(record.levelno, record.message, fields_of(record)) for record in caplog.records]
    thing = KRef("key")
    assert lines == [
        (V2, "Error syncing thing", {"thing": thing, "err": str(LOST)}),
        (logging.ERROR, "Error syncing thing", {"logger": "UnhandledError", "thing": thing, "err": str(WRONG)}),
        (logging.INFO, "Dropping thing", {"thing": thing, "err": str(LOST)}),
        (logging.ERROR, "Unhandled Error", {"logger": "UnhandledError", "err": str(LOST)}),
    ]


def test_a_failure_that_the_sync_has_logged_is_logged_again_when_the_key_is_given_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whatever the error in it; it is retried, and recorded as that error."""
    caplog.set_level(1, "kcm_cli.engine.worker")
    ring = CauseRing(LoopClock(EPOCH))
    assert times(iter([Logged(LOST), Logged(BUSY), Logged(LOST)]), 30, 2, ring=ring) == [0, 0.005, 0.015]
    (record,) = caplog.records
    assert (record.levelno, record.message) == (logging.ERROR, SYNC_FAILED.dropped)
    assert fields_of(record)["err"] == str(LOST)
    found = [entry.error for entry in ring.snapshot().entries() if isinstance(entry, Later)]
    assert found == ["ConnectionLost", BUSY.reason, "ConnectionLost"]


def test_the_text_of_an_error_has_the_key(caplog: pytest.LogCaptureFixture) -> None:
    times(iter([LOST, None]), 1, lines=unhandled('sync "{key}" failed with {error}'))
    (record,) = caplog.records
    assert (record.levelno, record.message) == (logging.ERROR, "Unhandled Error")
    assert fields_of(record)["err"] == f'sync "key" failed with {LOST}'


def test_giving_up_is_always_logged(caplog: pytest.LogCaptureFixture) -> None:
    times(iter([LOST]), 1, 0)
    (record,) = [record for record in caplog.records if "dropping the key" in record.message]
    assert record.levelno == logging.ERROR


def at_once(keys: int, count: int) -> tuple[int, int]:
    """The most keys that are synced at the same time, and how many loops there are then."""

    async def main() -> tuple[int, int]:
        clock = LoopClock(EPOCH)
        queue = WorkQueue("q", clock)
        busy: set[str] = set()
        most = 0

        async def sync(key: str) -> None:
            nonlocal most
            busy.add(key)
            most = max(most, len(busy))
            await clock.sleep(1.0)
            busy.remove(key)

        worker = asyncio.create_task(Worker(controller="c", queue=queue, sync=sync, clock=clock, count=count).run())
        for number in range(keys):
            queue.add(f"{number}")
        await clock.sleep(60.0)
        loops = sum(task.get_name().startswith("c worker") for task in asyncio.all_tasks())
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
        return most, loops

    return virtual.run(main())


@pytest.mark.parametrize(
    ("keys", "count", "expected"), [(0, 5, (0, 1)), (2, 5, (2, 3)), (5, 5, (5, 5)), (40, 5, (5, 5)), (3, 1, (1, 1))]
)
def test_keys_are_synced_concurrently_by_as_many_workers_as_needed(
    keys: int, count: int, expected: tuple[int, int]
) -> None:
    assert at_once(keys, count) == expected


@pytest.mark.parametrize("count", [0, -1])
async def test_a_controller_without_workers_goes_on_and_does_nothing(count: int) -> None:
    clock = LoopClock(EPOCH)
    queue = WorkQueue("q", clock)

    async def sync(key: str) -> None:
        raise AssertionError(key)

    task = asyncio.create_task(Worker(controller="c", queue=queue, sync=sync, clock=clock, count=count).run())
    queue.add("key")
    await asyncio.sleep(60)
    assert not task.done()
    assert len(queue) == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.real_time
async def test_a_worker_gives_the_loop_back_when_its_turn_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its syncs suspend nowhere, as those that write nothing. Each takes four fifths of a turn."""
    now = 0.0
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    clock = LoopClock(EPOCH)
    queue = WorkQueue("q", clock)
    done: list[int] = []

    async def sync(key: str) -> None:
        nonlocal now
        now += 0.8 * TURN_S
        done.append(1)

    for number in range(20):
        queue.add(str(number))
    worker = asyncio.create_task(Worker(controller="c", queue=queue, sync=sync, clock=clock).run())
    seen = [0]
    while seen[-1] < 20:
        await asyncio.sleep(0)
        seen.append(len(done))
    worker.cancel()
    await asyncio.wait([worker])
    assert max([after - before for before, after in pairwise(seen)]) == 2
