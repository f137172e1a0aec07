"""Pods with ResourceClaims in a whole sandbox, on virtual time."""

from typing import Any

import pytest

from kcm_cli.api.devices import RESOURCE_CLAIMS
from tests.kit.devices import CLASSES, DRIVER, FINALIZER, SLICES, allocate, by_name, make_claim
from tests.kit.world import PODS, World

NO_HELP = "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."


async def publish(world: World, *devices: str, node: str = "node-1", **fields: Any) -> None:
    """Create the class of all devices, and these devices on a node, with these fields."""
    if await world.is_deleted("gpu", CLASSES):
        await world.create(CLASSES, {"metadata": {"name": "gpu"}, "spec": {}})
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": pool, "nodeName": node, "devices": [{"name": one} | fields for one in devices]}
    await world.create(SLICES, {"metadata": {"name": node}, "spec": spec})


async def waits(world: World, pod: str = "p") -> tuple[str, str]:
    found = await world.condition(pod, "PodScheduled")
    return found.get("reason", ""), found.get("message", "")


async def status(world: World, claim: str = "c") -> dict[str, Any]:
    return (await world.get(RESOURCE_CLAIMS, claim)).get("status", {})


async def test_a_pod_gets_a_device_and_its_node(world: World):
    await publish(world, "d0", "d1", node="node-2")
    await world.pod("p", by_name("c"))
    await world.wait(5)
    assert await waits(world) == ("", "")  # nothing is tried before all claims are there
    await make_claim(world)
    await world.wait(5)
    assert await world.node_of("p") == "node-2"
    found = await world.get(RESOURCE_CLAIMS, "c")
    assert found["metadata"]["finalizers"] == [FINALIZER]
    allocation = found["status"]["allocation"]
    assert allocation["allocationTimestamp"]
    result = {"request": "r", "driver": DRIVER, "pool": "node-2", "device": "d0"}
    assert allocation["devices"] == {"results": [result]}
    uid = (await world.get(PODS, "p"))["metadata"]["uid"]
    assert found["status"]["reservedFor"] == [{"resource": "pods", "name": "p", "uid": uid}]


async def test_no_device_is_allocated_twice_and_the_last_pod_waits(world: World):
    names = [f"c{number}" for number in range(5)]
    for node in ("node-1", "node-2"):
        await publish(world, "d0", "d1", node=node)
    for name in names:
        await make_claim(world, name)
        await world.pod(name, by_name(name) | {"terminationGracePeriodSeconds": 1})
    await world.wait(10)
    waiting = [name for name in names if not await world.node_of(name)]
    assert len(waiting) == 1
    text = f"0/3 nodes are available: 3 cannot allocate all claims. still not schedulable, {NO_HELP}"
    assert await waits(world, waiting[0]) == ("Unschedulable", text)
    happy = [name for name in names if name not in waiting]
    found = [(await status(world, name))["allocation"]["devices"]["results"][0] for name in happy]
    assert len({(one["pool"], one["device"]) for one in found}) == 4
    await world.delete(PODS, happy[0])
    await world.wait(5)
    doc = await world.get(RESOURCE_CLAIMS, happy[0])
    doc["status"] = {}
    await world.client.update(RESOURCE_CLAIMS, "default", happy[0], doc, subresource="status")
    await world.wait(15)
    assert await world.node_of(waiting[0])


async def test_two_pods_share_a_claim_and_its_node(world: World):
    await publish(world, "d0", node="node-3")
    await make_claim(world)
    for name in ("p", "q"):
        await world.pod(name, by_name("c"))
    await world.wait(15)
    assert [await world.node_of(name) for name in ("p", "q")] == ["node-3", "node-3"]
    assert [user["name"] for user in (await status(world))["reservedFor"]] == ["p", "q"]


async def test_a_class_that_is_created_later(world: World):
    await make_claim(world)
    await world.pod("p", by_name("c"))
    await world.wait(3)
    why = "request r: device class gpu does not exist"
    text = f"0/3 nodes are available: {why}. no new claims to deallocate, {NO_HELP}"
    assert await waits(world) == ("Unschedulable", text)
    await publish(world, "d0")
    await world.wait(15)
    assert await world.node_of("p") == "node-1"


async def test_an_invalid_expression_is_reported_and_can_be_corrected(world: World):
    await publish(world, "d0")
    await make_claim(world, selectors=[{"cel": {"expression": 'device.attributes["a.b"].c == 1'}}])
    await world.pod("p", by_name("c"))
    await world.wait(3)
    text = 'running "DynamicResources" filter plugin: claim default/c: selector #0: CEL runtime error: no such key: c'
    assert await waits(world) == ("SchedulerError", text)
    await world.delete(RESOURCE_CLAIMS, "c")
    await make_claim(world)
    await world.wait(30)
    assert await world.node_of("p") == "node-1"


@pytest.mark.parametrize("idle", [True, False], ids=["nobody uses it", "somebody uses it"])
async def test_devices_on_a_node_that_cannot_have_the_pod(world: World, idle):
    await publish(world, "d0")
    await publish(world, "e0", node="node-2")
    await make_claim(world)
    await world.pod("other")
    await allocate(world, "c", *([] if idle else ["other"]))
    doc = await world.get(RESOURCE_CLAIMS, "c")
    doc["status"] = {}
    await world.client.update(RESOURCE_CLAIMS, "default", "c", doc, subresource="status")
    names = {"key": "metadata.name", "operator": "In", "values": ["node-1"]}
    result = {"request": "r", "driver": DRIVER, "pool": "node-1", "device": "d0"}
    uid = (await world.get(PODS, "other"))["metadata"]["uid"]
    users = [] if idle else [{"resource": "pods", "name": "other", "uid": uid}]
    selector = {"nodeSelectorTerms": [{"matchFields": [names]}]}
    doc = await world.get(RESOURCE_CLAIMS, "c")
    doc["status"] = {"allocation": {"devices": {"results": [result]}, "nodeSelector": selector}}
    doc["status"] |= {"reservedFor": users} if users else {}
    await world.client.update(RESOURCE_CLAIMS, "default", "c", doc, subresource="status")
    await world.pod("p", by_name("c") | {"nodeSelector": {"kubernetes.io/hostname": "node-2"}})
    await world.wait(30)
    assert await world.node_of("p") == ("node-2" if idle else "")
    pool = (await status(world))["allocation"]["devices"]["results"][0]["pool"]
    assert pool == ("node-2" if idle else "node-1")


async def tell(world: World, type_: str, device: str) -> None:
    """Set a condition of the claim's device, as its driver does."""
    doc = await world.get(RESOURCE_CLAIMS, "c")
    now = "2026-01-01T00:00:00Z"
    condition = {"type": type_, "status": "True", "reason": "Why", "message": "so", "lastTransitionTime": now}
    state = {"driver": DRIVER, "pool": "node-1", "device": device, "conditions": [condition]}
    doc["status"]["devices"] = [state]
    await world.client.update(RESOURCE_CLAIMS, "default", "c", doc, subresource="status")


async def device_of(world: World) -> str:
    return str((await status(world))["allocation"]["devices"]["results"][0]["device"])


SLOW = {"bindingConditions": ["Attached"], "bindingFailureConditions": ["Broken"]}


async def test_a_pod_waits_until_its_device_is_prepared(world: World):
    await publish(world, "d0", **SLOW)
    await make_claim(world)
    await world.pod("p", by_name("c"))
    await world.wait(60)
    assert not await world.node_of("p")
    assert (await world.status("p"))["nominatedNodeName"] == "node-1"
    text = "waiting for binding conditions for device on node node-1"
    assert ("BindingConditionsPending", text) in await world.events("p")
    await tell(world, "Attached", "d0")
    await world.wait(10)
    assert await world.node_of("p") == "node-1"


async def test_a_device_that_cannot_be_prepared_is_deallocated(world: World):
    await publish(world, "d0", **SLOW)
    await make_claim(world)
    await world.pod("p", by_name("c"))
    await world.wait(10)
    assert await device_of(world) == "d0"
    await world.delete(SLICES, "node-1")
    await publish(world, "e0")
    await tell(world, "Broken", "d0")
    await world.wait(7)
    why = 'device binding failed: claim=c, reason=Why, message="so"'
    failed = ("FailedScheduling", f'running PreBind plugin "DynamicResources": {why}')
    assert failed in await world.events("p")
    await world.wait(60)
    assert await world.node_of("p") == "node-1" and await device_of(world) == "e0"


async def test_a_device_that_is_not_prepared_in_time(world: World):
    await publish(world, "d0", **SLOW)
    await make_claim(world)
    await world.pod("p", by_name("c"))
    await world.wait(590)
    assert not [text for _, text in await world.events("p") if "timeout" in text]
    await world.wait(30)
    assert [text for _, text in await world.events("p") if "device binding timeout" in text]
    assert not await world.node_of("p")
