"""Events of simulated components: counted, and created again after another client has deleted them."""

from typing import Any

import pytest

from kcm_cli.runtime.events.correlate import Emitted
from kcm_cli.runtime.events.counted import CountedEvents
from tests.kit.world import World, resource

EVENTS = resource("events")


async def emitted(world: World, reason: str) -> list[dict[str, Any]]:
    return [item for item in await world.items(EVENTS) if item["reason"] == reason]


async def forget(world: World) -> None:
    for item in await world.items(EVENTS):
        await world.delete(EVENTS, item["metadata"]["name"])


async def test_a_pod_that_crashes_has_one_event_with_a_count(world: World) -> None:
    await world.pod("p", run_time="1s", exit_code="1")
    await world.wait(200)
    (event,) = await emitted(world, "BackOff")
    assert event["count"] > 2
    assert event["firstTimestamp"] < event["lastTimestamp"]
    assert event["source"]["host"] == event["reportingInstance"] == await world.node_of("p")


async def test_a_deleted_event_is_created_again(world: World) -> None:
    # a tag, so that the image is not pulled each time: at most 25 Events of one pod are in the first burst
    await world.pod("p", {"containers": [{"name": "c", "image": "nginx:1"}]}, run_time="1s", exit_code="1")
    await world.wait(100)
    (before,) = await emitted(world, "BackOff")
    await forget(world)
    await world.wait(400)
    (after,) = await emitted(world, "BackOff")
    assert after["count"] > before["count"]
    assert after["firstTimestamp"] == before["firstTimestamp"]


async def test_an_event_that_cannot_be_written_costs_the_others_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = CountedEvents.write

    async def fails(self: CountedEvents, event: Emitted, decision: Any) -> None:
        if event.notice.reason == "Created":
            raise ValueError("odd")
        await write(self, event, decision)

    monkeypatch.setattr(CountedEvents, "write", fails)
    await world.pod("p")
    await world.wait(5)
    assert not await emitted(world, "Created") and len(await emitted(world, "Started")) == 1
    assert [record.getMessage() for record in world.raised] == ["Unable to write event"]
    world.raised.clear()


async def test_the_output_of_a_probe_need_not_be_text(world: World) -> None:
    script = "printf '\\377\\303\\251'; exit 1"
    probe = {"exec": {"command": ["sh", "-c", script]}, "periodSeconds": 1, "failureThreshold": 1}
    container = {"name": "c", "image": "nginx", "command": ["sleep", "600"], "readinessProbe": probe}
    await world.pod("p", {"containers": [container]})
    await world.wait(10)
    (event,) = await emitted(world, "Unhealthy")
    assert event["message"] == "Readiness probe failed: \ufffd\u00e9"
