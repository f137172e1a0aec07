"""Full garbage collections."""

import asyncio
import gc

import pytest

from kcm_cli.component import garbage
from kcm_cli.component.clock import LoopClock
from kcm_cli.component.memory import Allocator


@pytest.mark.parametrize(
    ("grown", "cpu_s", "took_s", "times"),
    [
        pytest.param(19, 0.0, 0.0, 0, id="at rest, nothing to do"),
        pytest.param(20, 1.2, 0.01, 3, id="at rest, due"),
        pytest.param(49, 1.2, 0.05, 1, id="at rest, due before a look that took longer"),
        pytest.param(50, 1.2, 0.05, 3, id="at rest, due after a look that took longer, too"),
        pytest.param(200, 1.2, 9.0, 3, id="at rest, due after a look of seconds"),
        pytest.param(199, 1.3, 0.01, 0, id="busy, due"),
        pytest.param(200, 5.0, 0.01, 3, id="busy, overdue"),
    ],
)
async def test_times_of_full_collections(
    monkeypatch: pytest.MonkeyPatch, grown: int, cpu_s: float, took_s: float, times: int
) -> None:
    collected: list[float] = []
    frozen: list[float] = []
    before = gc.get_threshold()
    clock = LoopClock()
    start = clock.monotonic()
    monkeypatch.setattr(garbage.gc, "get_count", lambda: (0, grown, 0))
    monkeypatch.setattr(garbage.gc, "freeze", lambda: frozen.append(clock.monotonic() - start))
    monkeypatch.setattr(garbage.gc, "collect", lambda: collected.append(clock.monotonic() - start))
    monkeypatch.setattr(garbage.time, "perf_counter", lambda: len(collected) * took_s)
    monkeypatch.setattr(garbage.time, "process_time", lambda: (clock.monotonic() - start) / garbage.PERIOD_S * cpu_s)
    task = asyncio.create_task(garbage.collect_at_rest(clock))
    await clock.sleep(4.5 * garbage.PERIOD_S)
    assert gc.get_threshold()[1] > 10 * garbage._MOST  # then there are no full ones either
    task.cancel()
    await asyncio.wait([task])
    assert frozen == [garbage.PERIOD_S]
    assert len(collected) == times
    assert gc.get_threshold() == before


@pytest.mark.parametrize(("cpu_s", "times"), [(0.0, 3), (1.3, 0)], ids=["at rest", "busy"])
async def test_memory_is_given_back_at_rest(monkeypatch: pytest.MonkeyPatch, cpu_s: float, times: int) -> None:
    given: list[float] = []
    clock = LoopClock()
    monkeypatch.setattr(Allocator, "give_back", lambda _: given.append(clock.monotonic()))
    monkeypatch.setattr(garbage.gc, "freeze", lambda: None)
    monkeypatch.setattr(garbage.time, "process_time", lambda: clock.monotonic() / garbage.PERIOD_S * cpu_s)
    task = asyncio.create_task(garbage.collect_at_rest(clock))
    await clock.sleep(2 * garbage.TRIM_S + 20)
    task.cancel()
    await asyncio.wait([task])
    assert len(given) == times


def test_modules_are_loaded_without_collections(monkeypatch: pytest.MonkeyPatch) -> None:
    frozen: list[bool] = []
    monkeypatch.setattr(garbage.gc, "freeze", lambda: frozen.append(gc.isenabled()))
    with garbage.loading():
        with garbage.no_collections():
            pass
        assert not gc.isenabled()
    assert frozen == [False]
    assert gc.isenabled()
