"""The scheduler's Events: one, then a series, and again after another client has deleted them."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kcm_cli.planning.actions import EventRef, Notice
from kcm_cli.runtime.events.counted import EventNames
from kcm_cli.sandbox.scheduler.recorder import BURST, FINISHED_S, QPS, REFRESH_S, WAITING, Recorder
from tests.kit.world import World, resource

pytestmark = pytest.mark.cluster(nodes=0)

EVENTS = resource("events", "events.k8s.io")
POD = EventRef("v1", "Pod", "default", "p", "u", "7")
NOTICE = Notice(POD, "Warning", "FailedScheduling", "no")


async def emitted(world: World) -> list[dict[str, Any]]:
    return await world.items(EVENTS)


@pytest.fixture
async def recorder(world: World) -> AsyncIterator[Recorder]:
    """It runs."""
    made = Recorder(world.client, EventNames(world.clock), world.clock, "default-scheduler", "here")
    task = asyncio.create_task(made.run())
    yield made
    task.cancel()
    await asyncio.wait([task])


async def test_the_first_is_written_and_the_second_makes_it_a_series(world, recorder):
    recorder.emit(NOTICE, "Scheduling")
    await world.wait(1)
    (event,) = await emitted(world)
    assert (event["note"], event["action"], event["reportingController"]) == (
        "no",
        "Scheduling",
        "default-scheduler",
    )
    assert event["regarding"]["resourceVersion"] == "7"
    assert "series" not in event
    for _ in range(3):
        recorder.emit(NOTICE, "Scheduling")
        await world.wait(1)
    (event,) = await emitted(world)
    assert event["series"]["count"] == 2


async def test_a_changed_object_starts_another_series(world, recorder):
    recorder.emit(NOTICE, "Scheduling")
    recorder.emit(
        Notice(EventRef("v1", "Pod", "default", "p", "u", "8"), "Warning", "FailedScheduling", "no"), "Scheduling"
    )
    await world.wait(1)
    assert len(await emitted(world)) == 2


async def test_the_count_is_written_when_the_series_ends(world, recorder):
    for _ in range(5):
        recorder.emit(NOTICE, "Scheduling")
    await world.wait(2 * FINISHED_S + 1)
    (event,) = await emitted(world)
    assert event["series"]["count"] == 5
    recorder.emit(NOTICE, "Scheduling")
    await world.wait(1)
    assert len(await emitted(world)) == 2


async def test_a_deleted_event_of_a_series_is_created_again(world, recorder):
    recorder.emit(NOTICE, "Scheduling")
    recorder.emit(NOTICE, "Scheduling")
    await world.wait(1)
    (event,) = await emitted(world)
    await world.delete(EVENTS, event["metadata"]["name"])
    for _ in range(int(REFRESH_S / 60) + 1):
        recorder.emit(NOTICE, "Scheduling")
        await world.wait(60)
    (event,) = await emitted(world)
    assert event["series"]["count"] > 20


async def test_too_many_at_once_are_dropped(world, recorder):
    for number in range(WAITING + 50):
        recorder.emit(Notice(EventRef("v1", "Pod", "default", f"p{number}", "u"), "Normal", "Scheduled", ""), "Binding")
    await world.wait(1)
    assert BURST + QPS - 2 <= len(await emitted(world)) <= BURST + QPS + 2
    await world.wait(WAITING / QPS)
    assert len(await emitted(world)) == WAITING
    recorder.emit(Notice(EventRef("v1", "Pod", "default", f"p{WAITING}", "u"), "Normal", "Scheduled", ""), "Binding")
    await world.wait(1)
    assert not [event for event in await emitted(world) if "series" in event]
