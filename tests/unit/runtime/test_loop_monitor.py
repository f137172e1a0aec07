import asyncio

from kcm_cli.component.clock import LoopClock
from kcm_cli.component.metrics import Registry
from kcm_cli.runtime.loop_monitor import PERIOD_S, LoopMonitor


async def test_a_running_loop_is_not_stalled() -> None:
    clock = LoopClock()
    monitor = LoopMonitor(clock, Registry())
    task = asyncio.create_task(monitor.run())
    await asyncio.sleep(10)
    assert monitor.stalled_s(clock.monotonic()) == 0.0
    task.cancel()


async def test_a_blocked_loop_is_stalled() -> None:
    clock = LoopClock()
    monitor = LoopMonitor(clock)
    task = asyncio.create_task(monitor.run())
    await asyncio.sleep(1)
    assert monitor.stalled_s(clock.monotonic() + 7.0) >= 7.0 - PERIOD_S
    task.cancel()


async def test_lag_is_measured() -> None:
    registry = Registry()
    task = asyncio.create_task(LoopMonitor(LoopClock(), registry).run())
    await asyncio.sleep(5)
    assert registry.expose().split(b"kcm_event_loop_lag_seconds_count ")[1].split()[0] in (b"19", b"20")
    task.cancel()


async def test_a_loop_checks_often_while_the_other_is_blocked() -> None:
    clock, registry = LoopClock(), Registry()
    other = LoopMonitor(clock)
    task = asyncio.create_task(other.run())
    await asyncio.sleep(1)
    task.cancel()
    await asyncio.sleep(1)
    watching = asyncio.create_task(LoopMonitor(clock, registry, yields_to=other).run())
    await asyncio.sleep(0.1)
    turns = int(registry.expose().split(b"kcm_event_loop_lag_seconds_count ")[1].split()[0])
    assert turns > 0.1 / PERIOD_S * 10
    watching.cancel()
