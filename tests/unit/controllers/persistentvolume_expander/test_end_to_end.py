"""The controller in a whole sandbox, on virtual time."""

from tests.unit.controllers.controlling import controllers
from tests.unit.controllers.faults import Refusing
from tests.unit.sandbox.nodes.world import World, certificates, play, resource

__all__ = ["certificates", "play"]
CLASSES = resource("storageclasses", "storage.k8s.io", namespaced=False)
CLAIMS = resource("persistentvolumeclaims")
VOLUMES = resource("persistentvolumes", namespaced=False)
NAME = "persistentvolume-expander-controller"
WAITS = ("ExternalExpanding", "waiting for an external controller to expand this PVC")
MOVED = ("ExternalExpanding", "CSI migration enabled for kubernetes.io/aws-ebs; waiting for external resizer to expand")
RESIZER = "volume.kubernetes.io/storage-resizer"


async def bound(world: World, name: str, source: dict) -> None:
    """A claim of 1Gi, bound to a volume of its own."""
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


def test_a_claim_that_grows_waits_for_its_driver(play):
    async def life(world: World) -> None:
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

    play(life)


def test_what_failed_is_said_and_tried_again(play):
    async def life(world: World) -> None:
        await storage_class(world)
        await bound(world, "ebs", {"awsElasticBlockStore": {"volumeID": "vol-1"}})
        await grow(world, "ebs")
        transport = Refusing(world.server.transport(), lambda r: r.method == "PATCH" and not transport.refused)
        async with controllers(world, names=[NAME], transport=transport):
            await world.wait(5)
            text = "error setting resizer annotation to pvc default/ebs, with error the connection was lost"
            assert ("ExternalExpanding", text) in await world.events("ebs")
            assert (await world.get(CLAIMS, "ebs"))["metadata"]["annotations"][RESIZER] == "ebs.csi.aws.com"

    play(life)
