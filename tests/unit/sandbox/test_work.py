"""The workers of what a sandbox simulates."""

import asyncio
import time
from itertools import pairwise

import pytest

from kcm_cli.component.clock import LoopClock
from kcm_cli.runtime.turns import TURN_S
from kcm_cli.runtime.workqueue import WorkQueue
from kcm_cli.sandbox.work import work_on


@pytest.mark.real_time
async def test_a_worker_gives_the_loop_back_when_its_turn_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its syncs suspend nowhere, as the renewals of many Leases. Each takes four fifths of a turn."""
    now, done = 0.0, list[str]()
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    queue = WorkQueue("q", LoopClock())

    async def sync(key: str) -> None:
        nonlocal now
        now += 0.8 * TURN_S
        done.append(key)

    for number in range(20):
        queue.add(str(number))
    worker = asyncio.create_task(work_on(queue, 1, sync))
    seen = [0]
    while seen[-1] < 20:
        await asyncio.sleep(0)
        seen.append(len(done))
    worker.cancel()
    await asyncio.wait([worker])
    assert max([after - before for before, after in pairwise(seen)]) == 2
    assert done == [str(number) for number in range(20)]


async def test_a_sync_that_raises_is_tried_again_and_costs_the_others_nothing(caplog: pytest.LogCaptureFixture) -> None:
    clock, done = LoopClock(), list[str]()
    queue = WorkQueue("q", clock)

    async def sync(key: str) -> None:
        done.append(key)
        if done.count("bad") < 3 and key == "bad":
            raise KeyError("odd")

    worker = asyncio.create_task(work_on(queue, 1, sync))
    for key in ("bad", "good"):
        queue.add(key)
    await clock.sleep(10)
    assert sorted(done) == ["bad", "bad", "bad", "good"] and not worker.done()
    assert queue.num_requeues("bad") == 0
    failures = [record for record in caplog.records if record.exc_info]
    assert len(failures) == 2 and failures[0].fields["key"] == "bad"  # type: ignore[attr-defined]
    worker.cancel()
    await asyncio.wait([worker])
