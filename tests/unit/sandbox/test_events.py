"""Events of simulated components: counted, and created again after another client has deleted them."""

from typing import Any

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
