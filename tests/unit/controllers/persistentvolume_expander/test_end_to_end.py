"""The controller in a whole sandbox, on virtual time."""

import pytest

from kcm_cli.rest.transport import Request
from tests.kit.controlling import controllers
from tests.kit.faults import Noting, Refusing
from tests.kit.world import World, resource

CLASSES = resource("storageclasses", "storage.k8s.io", namespaced=False)
CLAIMS = resource("persistentvolumeclaims")
VOLUMES = resource("persistentvolumes", namespaced=False)
NAME = "persistentvolume-expander-controller"
WAITS = ("ExternalExpanding", "waiting for an external controller to expand this PVC")
MOVED = ("ExternalExpanding", "CSI migration enabled for kubernetes.io/aws-ebs; waiting for external resizer to expand")
RESIZER = "volume.kubernetes.io/storage-resizer"


async def bound(world: World, name: str, source: dict) -> None:
    """A claim of 1Gi, bound to a separate volume."""
    size = {"storage": "1Gi"}
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "grows"}
    asks = {"resources": {"requests": size}, "volumeName": f"v-{name}"}
    await world.create(CLAIMS, {"metadata": {"name": name}, "spec": {**spec, **asks}})
    uid = (await world.get(CLAIMS, name))["metadata"]["uid"]
    ref = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "default", "name": name, "uid": uid}
    volume = {"metadata": {"name": f"v-{name}"}, "spec": {**spec, "capacity": size, "claimRef": ref, **source}}
    await world.create(VOLUMES, volume)
    status = {"phase": "Bound", "capacity": size, "accessModes": ["ReadWriteOnce"]}
    await world.client.patch(CLAIMS, "default", name, {"status": status}, subresource="status")


async def grow(world: World, name: str) -> None:
    await world.patch(CLAIMS, name, {"spec": {"resources": {"requests": {"storage": "2Gi"}}}})


async def storage_class(world: World) -> None:
    doc = {"metadata": {"name": "grows"}, "provisioner": "d.example.com", "allowVolumeExpansion": True}
    await world.create(CLASSES, doc)


async def test_an_expanded_claim_waits_for_its_driver(world: World):
    await storage_class(world)
    await bound(world, "csi", {"csi": {"driver": "d.example.com", "volumeHandle": "h"}})
    await bound(world, "still", {"csi": {"driver": "d.example.com", "volumeHandle": "h2"}})
    await bound(world, "ebs", {"awsElasticBlockStore": {"volumeID": "vol-1"}})
    async with controllers(world, names=[NAME]):
        await world.wait(2)
        assert await world.events("csi") == []
        await grow(world, "csi")
        await grow(world, "ebs")
        await world.wait(2)
        assert await world.events("csi") == [WAITS]
        assert await world.events("still") == []
        (said,) = await world.events("ebs")
        assert (said[0], said[1].startswith(MOVED[1])) == (MOVED[0], True)
        assert (await world.get(CLAIMS, "ebs"))["metadata"]["annotations"][RESIZER] == "ebs.csi.aws.com"
        assert RESIZER not in (await world.get(CLAIMS, "csi"))["metadata"].get("annotations", {})


async def test_volumes_of_claims_that_are_not_to_be_expanded_cost_no_request(world: World):
    await storage_class(world)
    source = {"csi": {"driver": "d.example.com", "volumeHandle": "h"}}
    for name in "a", "b", "grown":
        await bound(world, name, source)
    await grow(world, "grown")
    transport = Noting(world.server.transport())

    def asked() -> list[str]:
        return [path.rpartition("/")[2] for path in transport.paths("GET") if "/persistentvolumes/" in path]

    async with controllers(world, names=[NAME], transport=transport):
        await world.wait(2)
        assert asked() == ["v-grown"]
        await bound(world, "late", source)
        await world.wait(2)
        assert asked() == ["v-grown"]
        await grow(world, "a")
        await world.wait(2)
        assert asked() == ["v-grown", "v-a"]
        assert await world.events("grown") == await world.events("a") == [WAITS]


async def test_failures_are_reported_and_retried(world: World):
    await storage_class(world)
    await bound(world, "ebs", {"awsElasticBlockStore": {"volumeID": "vol-1"}})
    await grow(world, "ebs")
    transport = Refusing(world.server.transport(), lambda r: r.method == "PATCH" and not transport.refused)
    async with controllers(world, names=[NAME], transport=transport):
        await world.wait(5)
        text = "error setting resizer annotation to pvc default/ebs, with error the connection was lost"
        assert ("ExternalExpanding", text) in await world.events("ebs")
        assert (await world.get(CLAIMS, "ebs"))["metadata"]["annotations"][RESIZER] == "ebs.csi.aws.com"


FLEX = {"flexVolume": {"driver": "example.com/flex"}}
PRE_RESIZE = "volume.alpha.kubernetes.io/pre-resize-capacity"


async def told_to_grow(world: World, name: str) -> None:
    """The claim waits for its node, and the volume has the new size."""
    made, volume = await world.get(CLAIMS, name), await world.get(VOLUMES, f"v-{name}")
    status = made["status"]
    assert {one["type"]: one["status"] for one in status["conditions"]} == {
        "Resizing": "True",
        "FileSystemResizePending": "True",
    }
    assert status["allocatedResourceStatuses"] == {"storage": "NodeResizePending"}
    assert (status["allocatedResources"], status["capacity"]) == ({"storage": "2Gi"}, {"storage": "1Gi"})
    assert made["metadata"]["annotations"][RESIZER] == "example.com/flex"
    assert (volume["spec"]["capacity"], volume["metadata"]["annotations"][PRE_RESIZE]) == ({"storage": "2Gi"}, "1Gi")


async def test_a_volume_expanded_by_its_node(world: World):
    await storage_class(world)
    await bound(world, "f", FLEX)
    async with controllers(world, names=[NAME]):
        await grow(world, "f")
        await world.wait(3)
        await told_to_grow(world, "f")
        done = {"capacity": {"storage": "2Gi"}, "conditions": None, "allocatedResourceStatuses": None}
        await world.client.patch(CLAIMS, "default", "f", {"status": done}, subresource="status")
        await world.wait(3)
        assert PRE_RESIZE not in (await world.get(VOLUMES, "v-f"))["metadata"].get("annotations", {})


async def test_without_recovery_allocated_resources_are_not_written(world: World):
    """The gate can be switched off in 1.33."""
    await storage_class(world)
    await bound(world, "f", FLEX)
    gates = [("", "RecoverVolumeExpansionFailure=false")]
    async with controllers(world, names=[NAME], gates=gates, emulated="1.33"):
        await grow(world, "f")
        await world.wait(3)
        made, volume = await world.get(CLAIMS, "f"), await world.get(VOLUMES, "v-f")
        assert [one["type"] for one in made["status"]["conditions"]] == ["Resizing", "FileSystemResizePending"]
        assert not {"allocatedResources", "allocatedResourceStatuses"} & made["status"].keys()
        assert volume["spec"]["capacity"] == {"storage": "2Gi"}
        assert volume["metadata"]["annotations"][PRE_RESIZE] == "1Gi"


async def test_a_block_volume_is_expanded_at_once(world: World):
    await storage_class(world)
    await bound(world, "f", {**FLEX, "volumeMode": "Block"})
    async with controllers(world, names=[NAME]):
        await grow(world, "f")
        await world.wait(3)
        status = (await world.get(CLAIMS, "f"))["status"]
        assert (status["capacity"], status.get("conditions")) == ({"storage": "2Gi"}, None)
        assert ("VolumeResizeSuccessful", "ExpandVolume succeeded for volume default/f") in await world.events("f")


@pytest.mark.parametrize("lost", range(4))
async def test_an_interrupted_expansion_continues(world: World, lost):
    """Each of the four writes is lost once."""
    await storage_class(world)
    await bound(world, "f", FLEX)
    await grow(world, "f")
    seen = []

    def loses(request: Request) -> bool:
        if request.method == "PATCH" and "/persistentvolume" in request.path:
            seen.append(request)
            return len(seen) == lost + 1
        return False

    async with controllers(world, names=[NAME], transport=Refusing(world.server.transport(), loses)):
        await world.wait(10)
        await told_to_grow(world, "f")
        assert "VolumeResizeFailed" in {reason for reason, _ in await world.events("f")}
