"""Pods that request extended resources and get devices, in a whole sandbox, on virtual time."""

from typing import Any

import pytest
from msgspec.structs import replace

from kcm_cli.api.devices import RESOURCE_CLAIMS
from kcm_cli.controllers.resourceclaim.config import ResourceClaimConfig
from kcm_cli.planning.actions import MERGE
from kcm_cli.sandbox.apiserver.entry.fault import Fault
from tests.kit.controlling import controllers
from tests.kit.devices import CLASSES, DRIVER, FINALIZER, SLICES
from tests.kit.world import NODES, PODS, World

GPU = "example.com/gpu"
EXTENDED = "resource.kubernetes.io/extended-resource-claim"


def asks(count: int = 1, resource: str = GPU, **spec: Any) -> dict[str, Any]:
    amounts = {resource: str(count)}
    resources = {"requests": amounts, "limits": amounts}
    return {"containers": [{"name": "c", "image": "nginx", "resources": resources}], **spec}


async def offer(world: World, *devices: str, node: str = "node-1", resource: str | None = GPU) -> None:
    spec: dict[str, Any] = {"extendedResourceName": resource} if resource else {}
    await world.create(CLASSES, {"metadata": {"name": "gpu"}, "spec": spec})
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": pool, "nodeName": node, "devices": [{"name": one} for one in devices]}
    await world.create(SLICES, {"metadata": {"name": node}, "spec": spec})


async def claims(world: World) -> list[dict[str, Any]]:
    return await world.items(RESOURCE_CLAIMS)


async def waits(world: World, pod: str = "p") -> tuple[str, str]:
    found = await world.condition(pod, "PodScheduled")
    return found.get("reason", ""), found.get("message", "")


async def test_from_a_pod_to_its_claim_to_its_end(world: World):
    await offer(world, "d0", node="node-2")
    async with controllers(world, ResourceClaimConfig(), names=["resourceclaim-controller"]):
        await world.pod("p", asks(terminationGracePeriodSeconds=1))
        await world.wait(5)
        pod = await world.get(PODS, "p")
        assert pod["spec"]["nodeName"] == "node-2" and pod["status"]["phase"] == "Running"
        [claim] = await claims(world)
        meta, name = claim["metadata"], claim["metadata"]["name"]
        assert meta["generateName"] == "p-extended-resources-" and name.startswith("p-extended-resources-")
        assert meta["annotations"] == {EXTENDED: "true"} and meta["finalizers"] == [FINALIZER]
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": pod["metadata"]["uid"], "controller": True}
        assert meta["ownerReferences"] == [owner]
        request = "container-0-request-0"
        exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
        assert claim["spec"]["devices"]["requests"] == [{"name": request, "exactly": exactly}]
        result = {"request": request, "driver": DRIVER, "pool": "node-2", "device": "d0"}
        assert claim["status"]["allocation"]["devices"]["results"] == [result]
        user = {"resource": "pods", "name": "p", "uid": pod["metadata"]["uid"]}
        assert claim["status"]["reservedFor"] == [user]
        mapping = {"containerName": "c", "resourceName": GPU, "requestName": request}
        expected = {"requestMappings": [mapping], "resourceClaimName": name}
        assert pod["status"]["extendedResourceClaimStatus"] == expected
        await world.pod("q", asks())
        await world.wait(3)
        text = "0/3 nodes are available: 3 cannot allocate all claims. still not schedulable, preemption: "
        text += "0/3 nodes are available: 3 Preemption is not helpful for scheduling."
        assert await waits(world, "q") == ("Unschedulable", text)
        assert [one["metadata"]["name"] for one in await claims(world)] == [name]
        await world.delete(PODS, "p")
        await world.wait(20)
        assert await world.node_of("q") == "node-2"


async def test_a_pod_that_has_ended_gives_its_devices_back(world: World):
    await offer(world, "d0")
    async with controllers(world, ResourceClaimConfig(), names=["resourceclaim-controller"]):
        await world.pod("p", asks(restartPolicy="Never"), run_time="3s")
        await world.wait(20)
        assert (await world.status("p"))["phase"] == "Succeeded"
        assert await claims(world) == []


async def test_a_class_that_is_created_later(world: World):
    await offer(world, "d0", "d1", resource=None)
    await world.pod("p", asks())
    await world.pod("q", asks(resource="deviceclass.resource.kubernetes.io/later"))
    await world.wait(3)
    assert f"3 Insufficient {GPU}" in (await waits(world))[1]
    await world.patch(CLASSES, "gpu", {"spec": {"extendedResourceName": GPU}})
    await world.wait(15)
    assert [await world.node_of("p"), await world.node_of("q")] == ["node-1", ""]
    await world.create(CLASSES, {"metadata": {"name": "later"}, "spec": {}})
    await world.wait(15)
    assert await world.node_of("q") == "node-1"


CLAIM, STATUS, TEXT = "resourceclaims*", "pods/status", "injected: not now"


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        pytest.param(Fault("refuse", verbs=("create",), resources=(CLAIM,)), "create claim for ext", id="no claim"),
        pytest.param(Fault("lose", verbs=("create",), resources=(CLAIM,)), "create claim for ext", id="answer lost"),
        pytest.param(Fault("refuse", verbs=("update",), resources=(CLAIM,)), "add finalizer to", id="no finalizer"),
        pytest.param(
            Fault("refuse", verbs=("update",), resources=(CLAIM,), skip=1), "add allocation and", id="no allocation"
        ),
        pytest.param(
            Fault("refuse", verbs=("patch",), resources=(STATUS,), skip=1), "update pod default/p Ext", id="not named"
        ),
        pytest.param(Fault("lose", verbs=("patch",), resources=(STATUS,), skip=1), "", id="named, answer lost"),
        pytest.param(Fault("refuse", verbs=("patch",), resources=(STATUS,)), "", id="not nominated"),
        pytest.param(Fault("refuse", verbs=("create",), resources=("pods/binding",)), "binding rejected", id="unbound"),
        pytest.param(Fault("lose", verbs=("create",), resources=("pods/binding",)), "", id="bound, answer lost"),
    ],
)
async def test_after_any_failure_the_pod_has_the_device_and_one_claim(world: World, fault, problem):
    await offer(world, "d0")
    injected = world.server.api.faults.add(replace(fault, times=1, message=TEXT))
    await world.pod("p", asks())
    await world.wait(30)
    assert len(injected.happened) == 1
    assert any(problem in text for _, text in await world.events("p"))
    pod = await world.get(PODS, "p")
    assert (pod["spec"].get("nodeName"), pod["status"]["phase"]) == ("node-1", "Running")
    [claim] = await claims(world)
    assert pod["status"]["extendedResourceClaimStatus"]["resourceClaimName"] == claim["metadata"]["name"]
    assert claim["status"]["reservedFor"][0]["uid"] == pod["metadata"]["uid"]


async def test_a_claim_that_cannot_be_deleted_is_deleted_when_the_pod_is_tried_again(world: World):
    await offer(world, "d0")
    faults = world.server.api.faults
    faults.add(Fault("refuse", verbs=("create",), resources=("pods/binding",), times=1))
    faults.add(Fault("refuse", verbs=("delete",), resources=(CLAIM,), times=1))
    await world.pod("p", asks())
    await world.wait(60)
    assert await world.node_of("p") == "node-1"
    assert len(await claims(world)) == 1
    texts = [text for _, text in await world.events("p")]
    assert any("cannot schedule extended resource claim. deletion of ResourceClaim completed, " in t for t in texts)


async def test_a_pod_deleted_while_it_is_scheduled_leaves_no_claim(world: World):
    await offer(world, "d0")
    world.server.api.faults.add(Fault("delay", verbs=("create",), resources=("pods/binding",), delay_s=5.0))
    await world.pod("p", asks())
    await world.wait(2)
    assert len(await claims(world)) == 1
    await world.delete(PODS, "p", grace_s=0)
    await world.wait(10)
    assert await claims(world) == []
    await world.pod("q", asks())
    await world.wait(10)
    assert await world.node_of("q") == "node-1"


async def test_a_claim_that_was_left_is_deleted_before_another_is_made(world: World):
    await world.pod("p", asks(resource=GPU))
    await world.wait(2)
    uid = (await world.get(PODS, "p"))["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": True}
    meta = {"name": "left", "annotations": {EXTENDED: "true"}, "ownerReferences": [owner]}
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    doc = {"metadata": meta | {"finalizers": [FINALIZER]}, "spec": spec}
    await world.create(RESOURCE_CLAIMS, doc)
    await offer(world, "d0")
    await world.wait(30)
    assert await world.node_of("p") == "node-1"
    [claim] = await claims(world)
    assert claim["metadata"]["name"].startswith("p-extended-resources-")
    texts = [text for _, text in await world.events("p")]
    assert any("cannot schedule extended resource claim. deletion of ResourceClaim completed, " in t for t in texts)


@pytest.mark.parametrize("plugin", [True, False], ids=["a plugin had it", "devices"])
async def test_a_kubelet_accepts_the_pod(world: World, plugin):
    """Its node reports none of the resource (a plugin was removed): only the pod's devices count."""
    await offer(world, "d0")
    node = await world.get(NODES, "node-1")
    status = {"status": {"capacity": node["status"]["capacity"] | {GPU: "0"}}}
    await world.client.patch(NODES, "", "node-1", status, content_type=MERGE, subresource="status")
    await world.wait(15)
    assert (await world.get(NODES, "node-1"))["status"]["allocatable"][GPU] == "0"
    await world.pod("p", asks(**({"nodeName": "node-1"} if plugin else {})))
    await world.wait(5)
    found = await world.status("p")
    expected = ("Failed", f"OutOf{GPU}") if plugin else ("Running", None)
    assert (found["phase"], found.get("reason")) == expected
