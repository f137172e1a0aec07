"""Pods whose claims are not bound, or whose volumes are not attached, do not start."""

from kcm_cli.controllers.persistentvolume_attach_detach.config import AttachDetachConfig
from kcm_cli.planning.volumes.attachable import attachment_name
from kcm_cli.sandbox.nodes.shape import ANNOTATIONS
from tests.kit.controlling import controllers
from tests.kit.world import NODES, World
from tests.unit.controllers.persistentvolume_attach_detach.storage import (
    ATTACHMENTS,
    CLAIMS,
    DRIVERS,
    VOLUMES,
    bound,
    using,
)

DISK = "disk.example.com"


def source(driver: str = DISK) -> dict:
    return {"csi": {"driver": driver, "volumeHandle": "h-a"}}


async def attachable(world: World) -> None:
    """A claim that is bound to a volume that has to be attached."""
    await world.create(DRIVERS, {"metadata": {"name": DISK}, "spec": {}})
    await bound(world, "a", source=source())


async def creating(world: World, name: str) -> bool:
    """Whether a pod's containers wait to be created."""
    status = await world.status(name)
    state = status["containerStatuses"][0]["state"]
    return (status["phase"], state) == ("Pending", {"waiting": {"reason": "ContainerCreating"}})


async def attached(world: World, value: bool) -> None:
    """Report that the volume is attached to node-1, as its driver does."""
    await world.client.patch(
        ATTACHMENTS, "", attachment_name(DISK, "h-a", "node-1"), {"status": {"attached": value}}, subresource="status"
    )


async def test_a_pod_waits_until_its_volume_is_attached(world: World):
    await attachable(world)
    names = ["persistentvolume-attach-detach-controller"]
    async with controllers(world, AttachDetachConfig(), names=names):
        await world.pod("p", using("a"))
        await world.wait(30)
        assert await creating(world, "p")
        assert "FailedMount" not in {reason for reason, _ in await world.events("p")}
        await attached(world, True)
        await world.wait(1)
        assert (await world.status("p"))["phase"] == "Running"


async def test_the_attach_detach_controller_reports_failed_attachments(world: World):
    await attachable(world)
    names = ["persistentvolume-attach-detach-controller"]
    async with controllers(world, AttachDetachConfig(), names=names):
        await world.pod("p", using("a"))
        await world.wait(2)
        error = {"status": {"attachError": {"message": "no such disk", "time": "2026-01-01T00:00:00Z"}}}
        name = attachment_name(DISK, "h-a", "node-1")
        await world.client.patch(ATTACHMENTS, "", name, error, subresource="status")
        await world.wait(5)
        assert await creating(world, "p")
        found = dict(await world.events("p"))["FailedAttachVolume"]
        assert found.startswith('AttachVolume.Attach failed for volume "v-a"')
        assert "no such disk" in found


async def test_drivers_without_attachment_and_unknown_ones_do_not_delay_pods(world: World):
    await world.create(DRIVERS, {"metadata": {"name": DISK}, "spec": {"attachRequired": False}})
    await bound(world, "a", source=source())
    await bound(world, "b", source=source("unknown.example.com"))
    flex = {"name": "d", "flexVolume": {"driver": "example.com/disk"}}
    for name, spec in (("a", using("a")), ("b", using("b")), ("c", {"volumes": [flex]})):
        await world.pod(name, spec)
    await world.wait(2)
    assert [(await world.status(name))["phase"] for name in "abc"] == ["Running"] * 3


async def test_a_deleted_driver_does_not_delay_pods(world: World):
    await attachable(world)
    await world.pod("p", using("a"))
    await world.wait(2)
    assert await creating(world, "p")
    await world.delete(DRIVERS, DISK)
    await world.wait(1)
    assert (await world.status("p"))["phase"] == "Running"


async def test_a_pod_on_a_node_waits_for_its_claim(world: World):
    await world.create(DRIVERS, {"metadata": {"name": DISK}, "spec": {"attachRequired": False}})
    await world.pod("p", using("a"))
    await world.wait(2)
    assert await creating(world, "p")
    text = "Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[], failed to process "
    text += "volumes=[data]: error processing PVC default/a: "
    missing = 'failed to fetch PVC from API server: persistentvolumeclaims "a" not found'
    assert ("FailedMount", text + missing) in await world.events("p")
    pending = {
        "accessModes": ["ReadWriteOnce"], "storageClassName": "none", "volumeName": "v-a",
        "resources": {"requests": {"storage": "1Gi"}},
    }  # fmt: skip
    await world.create(CLAIMS, {"metadata": {"name": "a"}, "spec": pending})
    await world.wait(2)
    assert ("FailedMount", text + "PVC is not bound") in await world.events("p")
    await world.delete(CLAIMS, "a", grace_s=0)
    await world.patch(CLAIMS, "a", {"metadata": {"finalizers": None}})
    await world.wait(1)
    await bound(world, "a", source=source())
    await world.wait(1)
    assert (await world.status("p"))["phase"] == "Running"


async def test_a_volume_bound_to_another_claim_is_not_mounted(world: World):
    await bound(world, "a", source=source())
    volume = await world.get(VOLUMES, "v-a")
    await world.patch(VOLUMES, "v-a", {"spec": {"claimRef": {"uid": "other"}}})
    await world.pod("p", using("a"))
    await world.wait(2)
    assert await creating(world, "p")
    uid = volume["spec"]["claimRef"]["uid"]
    text = f"found PV object v-a but its pv.Spec.ClaimRef.UID other does not point to claim.UID {uid}"
    assert any(message.endswith(text) for reason, message in await world.events("p") if reason == "FailedMount")


async def test_attachments_to_other_nodes_do_not_count(world: World):
    await attachable(world)
    await world.pod("p", using("a"))
    await world.wait(1)
    node_status = {"status": {"volumesAttached": [{"name": f"kubernetes.io/csi/{DISK}^h-a", "devicePath": ""}]}}
    for node, phase in (("node-2", "Pending"), ("node-1", "Running")):
        await world.client.patch(NODES, "", node, node_status, subresource="status")
        await world.wait(1)
        assert (await world.status("p"))["phase"] == phase


async def test_nodes_that_attach_volumes_themselves_wait_for_nobody(world: World):
    await attachable(world)
    await world.patch(NODES, "node-1", {"metadata": {"annotations": {next(iter(ANNOTATIONS)): None}}})
    await world.pod("p", using("a"))
    await world.wait(1)
    assert (await world.status("p"))["phase"] == "Running"
