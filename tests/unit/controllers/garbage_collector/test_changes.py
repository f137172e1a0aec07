"""The queue of changes: in order, interruptible, and one that cannot be handled stops nothing."""

import asyncio
import logging

import pytest

from kcm_cli.component.clock import LoopClock
from kcm_cli.component.metrics.workqueue import WorkqueueMetrics
from kcm_cli.controllers.garbage_collector.changes import CHUNK, Absent, Change, GraphChanges, ObjectKind
from kcm_cli.controllers.garbage_collector.graph import Identity
from kcm_cli.machinery.meta import ObjectMeta


def absent(number: int) -> Absent:
    return Absent(Identity("ConfigMap", "v1", "ns", f"c{number}", str(number)))


async def test_changes_are_handled_in_order_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    handled: list[str] = []

    async def handle(change: Change) -> None:
        assert isinstance(change, Absent)
        if change.identity.uid == "1":
            raise ValueError("odd")
        await asyncio.sleep(0.5)
        handled.append(change.identity.uid)

    async def main() -> WorkqueueMetrics:
        clock = LoopClock()
        metrics = WorkqueueMetrics("q", clock.monotonic)
        changes = GraphChanges(clock, metrics, handle)
        task = asyncio.create_task(changes.run())
        for number in range(3):
            changes.put(absent(number))
        assert not changes.idle
        await clock.sleep(0.6)
        assert not changes.idle
        changes.put(absent(3))
        await clock.sleep(2)
        assert changes.idle
        task.cancel()
        return metrics

    with caplog.at_level(logging.ERROR):
        metrics = await main()
    assert handled == ["0", "2", "3"]
    assert [record.message for record in caplog.records] == ["Change of the graph was not handled"]
    assert (metrics.adds.value, metrics.depth.value, len(metrics.running_s())) == (4, 0, 0)
    assert metrics.worked.count == 4


async def test_many_changes_yield_to_other_tasks() -> None:
    async def handle(change: Change) -> None:
        pass

    changes = GraphChanges(LoopClock(), None, handle)
    for number in range(10 * CHUNK):
        changes.put(absent(number))
    task = asyncio.create_task(changes.run())
    turns = 0
    while not changes.idle:
        await asyncio.sleep(0)
        turns += 1
    task.cancel()
    assert turns >= 10


def test_kinds_name_objects() -> None:
    meta = ObjectMeta(name="a", namespace="ns", uid="u")
    assert ObjectKind("apps/v1", "Deployment").identity(meta) == Identity("Deployment", "apps/v1", "ns", "a", "u")
