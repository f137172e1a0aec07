"""The controller in a whole sandbox, on virtual time."""

import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest

from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.ephemeral_volume.config import EphemeralVolumeConfig
from kcm_cli.controllers.persistentvolume_attach_detach.config import AttachDetachConfig
from kcm_cli.controllers.persistentvolume_attach_detach.world import World as World_
from kcm_cli.controllers.persistentvolume_binder.config import PersistentVolumeBinderConfig
from kcm_cli.planning.volumes.attachable import attachment_name
from kcm_cli.rest.transport import Request
from kcm_cli.sandbox.nodes import commands
from kcm_cli.sandbox.storage.plan import DRIVER
from tests.kit.controlling import Faulty, controllers, metric
from tests.kit.faults import Held, Refusing
from tests.kit.world import NODES, PODS, World, resource
from tests.unit.controllers.persistentvolume_attach_detach.storage import (
    ATTACHMENTS,
    CLAIMS,
    DRIVERS,
    VOLUMES,
    attachment,
    bound,
    in_use,
    reported,
    unique,
    using,
)

NAME = "persistentvolume-attach-detach-controller"
CONFIG = AttachDetachConfig()
SUCCEEDED = ("SuccessfulAttachVolume", 'AttachVolume.Attach succeeded for volume "v-a" ')


def running(world: World, config: AttachDetachConfig = CONFIG, **more):
    return controllers(world, config, names=[NAME], **more)


async def start(world: World, name: str, spec: dict) -> None:
    """A pod that does not start in the very moment in which its volume is attached: Events are named by the time."""
    await world.pod(name, spec, start_delay="1500ms")


@asynccontextmanager
async def attached(world: World, config: AttachDetachConfig = CONFIG, **more) -> AsyncIterator[None]:
    """The controller runs, and has attached the volume of the claim ``a`` for the pod ``p``."""
    await bound(world, "a")
    async with running(world, config, **more):
        await start(world, "p", using("a"))
        await world.wait(3)
        yield


async def fail(world: World, node: str) -> None:
    """Stop a node's kubelet and let its Node say so, as the node lifecycle controller does."""
    await commands.fail(world.client, node)
    condition = {"type": "Ready", "status": "Unknown"}
    await world.client.patch(NODES, "", node, {"status": {"conditions": [condition]}}, subresource="status")


async def test_a_volume_is_attached_and_detached_with_its_pod(world: World):
    async with attached(world):
        made = await world.get(ATTACHMENTS, attachment("a"))
        source = {"persistentVolumeName": "v-a"}
        assert made["spec"] == {"attacher": DRIVER, "nodeName": "node-1", "source": source}
        assert made["status"]["attached"] is True
        node = await world.get(NODES, "node-1")
        assert node["status"]["volumesAttached"] == [{"name": unique("a"), "devicePath": ""}]
        assert await in_use(world) == [unique("a")]
        assert SUCCEEDED in await world.events("p")
        await world.delete(PODS, "p")
        await world.wait(5)
        assert await world.is_deleted(attachment("a"), ATTACHMENTS)
        assert (await reported(world), await in_use(world)) == ([], [])


async def test_the_need_of_a_pod_that_no_event_brought_is_found(world: World, monkeypatch):
    """And that of a pod which is gone, and no event has said so."""
    worlds: list[World_] = []
    begin = World_.__init__

    def noted(self, *args):
        begin(self, *args)
        worlds.append(self)

    monkeypatch.setattr(World_, "__init__", noted)
    await bound(world, "a")
    async with running(world):
        await world.wait(2)
        (state,) = worlds
        monkeypatch.setattr(state.desired, "add", lambda pod, volume: False)
        await start(world, "p", using("a"))
        await world.wait(10)
        assert await reported(world) == []
        monkeypatch.undo()
        await world.wait(190)
        assert await reported(world) == [unique("a")]
        monkeypatch.setattr(state.desired, "remove_pod", lambda uid: [])
        await world.delete(PODS, "p")
        await world.wait(10)
        assert await reported(world) == [unique("a")]
        monkeypatch.undo()
        await world.wait(190)
        assert await reported(world) == []


async def test_pods_of_one_volume_all_get_the_events(world: World):
    """Upstream reconciles every 100 ms."""
    await bound(world, "a")
    async with running(world):
        for pod in ("p", "q"):
            await start(world, pod, using("a"))
            await world.wait(0.02)
        await world.wait(3)
        assert SUCCEEDED in await world.events("p")
        assert SUCCEEDED in await world.events("q")
        for pod in ("r", "s"):
            await start(world, pod, using("a", node="node-2"))
            await world.wait(0.02)
        await world.wait(1)
        text = 'Multi-Attach error for volume "v-a" Volume is already used by pod(s) p, q'
        assert ("FailedAttachVolume", text) in await world.events("r")
        assert ("FailedAttachVolume", text) in await world.events("s")


async def test_volumes_missing_in_the_node_status_are_written_again(world: World):
    """As after a start with a stale cache, which differs from the node's status."""
    async with attached(world):
        await world.client.patch(NODES, "", "node-1", {"status": {"volumesAttached": None}}, subresource="status")
        assert await reported(world) == []
        await world.wait(3)
        assert await reported(world) == [unique("a")]


async def test_volumes_without_a_driver_are_attached_without_an_attachment(world: World):
    iscsi = {"targetPortal": "10.0.0.1:3260", "iqn": "iqn.2001-04.com.example:x", "lun": 3}
    await bound(world, "i", source={"iscsi": iscsi})
    volumes = [
        {"name": "i", "persistentVolumeClaim": {"claimName": "i"}},
        {"name": "f", "fc": {"targetWWNs": ["500a", "500b"], "lun": 2}},
        {"name": "w", "fc": {"wwids": ["3600"]}},
        {"name": "e", "emptyDir": {}},
    ]
    async with running(world):
        await start(world, "p", using("i", volumes=volumes))
        await world.wait(3)
        assert await reported(world) == [
            "kubernetes.io/fc/[3600]",
            "kubernetes.io/fc/[500a 500b]:2",
            "kubernetes.io/iscsi/10.0.0.1:3260:iqn.2001-04.com.example:x:3",
        ]
        assert await world.items(ATTACHMENTS) == []
        await world.delete(PODS, "p")
        await world.wait(5)
        assert await reported(world) == []


async def test_a_migrated_inline_volume_is_attached_by_its_driver(world: World):
    driver, handle = "pd.csi.storage.gke.io", "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"
    disk = {"name": "d", "gcePersistentDisk": {"pdName": "d", "fsType": "ext4"}}
    name, registry = attachment_name(driver, handle, "node-1"), Registry()
    async with running(world, metrics=registry):
        await start(world, "p", using("", volumes=[disk]))
        await world.wait(1)
        made = (await world.get(ATTACHMENTS, name))["spec"]
        csi = {"driver": driver, "volumeHandle": handle, "fsType": "ext4", "volumeAttributes": {"partition": ""}}
        source = {"inlineVolumeSpec": {"csi": csi, "accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem"}}
        assert made == {"attacher": driver, "nodeName": "node-1", "source": source}
        attached = {"status": {"attached": True}}
        await world.client.patch(ATTACHMENTS, "", name, attached, subresource="status")
        await world.wait(1)
        assert await reported(world) == [f"kubernetes.io/csi/{driver}^{handle}"]
        text = f'AttachVolume.Attach succeeded for volume "{driver}-d" '
        assert ("SuccessfulAttachVolume", text) in await world.events("p")
        took = partial(metric, registry, "storage_operation_duration_seconds_count", operation_name="volume_attach")
        assert (took(migrated="true"), took(migrated="false")) == (1, 0)
        await world.delete(PODS, "p")
        await world.wait(5)
        assert await world.is_deleted(name, ATTACHMENTS)


async def test_a_claim_that_is_bound_late_is_attached(world: World):
    async with running(world):
        await start(world, "p", using("a"))
        await world.wait(3)
        await bound(world, "a")
        await world.wait(3)
        assert await reported(world) == [unique("a")]


async def test_volumes_of_drivers_without_attach_are_skipped(world: World):
    await world.create(DRIVERS, {"metadata": {"name": "d.example.com"}, "spec": {"attachRequired": False}})
    await bound(world, "a", source={"csi": {"driver": "d.example.com", "volumeHandle": "h-a"}})
    async with running(world):
        await start(world, "p", using("a"))
        await world.wait(3)
        assert (await reported(world), await world.items(ATTACHMENTS)) == ([], [])


async def test_an_attachment_of_a_driver_without_attach_is_deleted_also_by_the_next_manager(world: World):
    """It was made before the CSIDriver. Provisioners delete no volume that has one."""
    await bound(world, "a", source={"csi": {"driver": "d.example.com", "volumeHandle": "h-a"}})
    async with running(world):
        await start(world, "p", using("a"))
        await world.wait(3)
        assert len(await world.items(ATTACHMENTS)) == 1
    await world.create(DRIVERS, {"metadata": {"name": "d.example.com"}, "spec": {"attachRequired": False}})
    async with running(world):
        await world.delete(PODS, "p")
        await world.wait(5)
        assert (await reported(world), await world.items(ATTACHMENTS)) == ([], [])


async def test_nodes_without_controller_managed_attach_are_skipped(world: World):
    await bound(world, "a")
    await world.create(NODES, {"metadata": {"name": "own"}})
    async with running(world):
        await start(world, "p", using("a", "own"))
        await world.wait(3)
        assert await world.items(ATTACHMENTS) == []
        managed = {"annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}}
        await world.patch(NODES, "own", {"metadata": managed})
        await world.wait(3)
        assert await reported(world, "own") == [unique("a")]


# -- several nodes


async def test_a_single_node_volume_waits_until_it_is_detached(world: World):
    async with attached(world):
        await start(world, "q", using("a", "node-2"))
        await world.wait(30)
        text = 'Multi-Attach error for volume "v-a" Volume is already used by pod(s) p'
        assert (await world.events("q")).count(("FailedAttachVolume", text)) == 1
        assert await reported(world, "node-2") == []
        await world.delete(PODS, "p")
        await world.wait(5)
        assert (await reported(world, "node-1"), await reported(world, "node-2")) == (
            [],
            [unique("a")],
        )


async def test_a_shared_volume_is_attached_to_several_nodes(world: World):
    await bound(world, "a", ["ReadWriteMany"])
    async with running(world):
        await start(world, "p", using("a"))
        await start(world, "q", using("a", "node-2"))
        await world.wait(3)
        assert (await reported(world, "node-1"), await reported(world, "node-2")) == (
            [unique("a")],
            [unique("a")],
        )
        await world.delete(PODS, "p")
        await world.wait(5)
        assert (await reported(world, "node-1"), await reported(world, "node-2")) == (
            [],
            [unique("a")],
        )


async def test_a_node_whose_status_cannot_be_written_holds_up_no_other_one(world: World):
    """As one whose status a webhook refuses."""
    await bound(world, "a", ["ReadWriteMany"])

    def refuses(request: Request) -> bool:
        gone = request.method == "PATCH" and request.path.endswith("/nodes/node-1/status")
        return gone and json.loads(request.body)["status"]["volumesAttached"] is None

    async with running(world, transport=Refusing(world.server.transport(), refuses)):
        for number in (1, 2):
            await start(world, f"p{number}", using("a", f"node-{number}"))
        await world.wait(3)
        for number in (1, 2):
            await world.delete(PODS, f"p{number}")
        await start(world, "p3", using("a", "node-3"))
        await world.wait(10)
        assert await reported(world, "node-1") == [unique("a")]
        assert await reported(world, "node-2") == []
        assert await reported(world, "node-3") == [unique("a")]
        assert await world.is_deleted(attachment("a", "node-2"), ATTACHMENTS)


# -- nodes in trouble


async def test_a_volume_of_a_dead_node_is_detached_after_six_minutes(world: World):
    metrics = Registry()
    async with attached(world, metrics=metrics):
        await fail(world, "node-1")
        await world.client.delete(PODS, "default", "p", grace_s=0)
        await world.wait(350)
        assert not await world.is_deleted(attachment("a"), ATTACHMENTS)
        await world.wait(20)
        assert await world.is_deleted(attachment("a"), ATTACHMENTS)
        page = metrics.expose().decode()
        assert 'attachdetach_controller_forced_detaches{reason="timeout"} 1' in page


async def test_force_detach_can_be_disabled(world: World):
    async with attached(world, AttachDetachConfig(disable_force_detach_on_timeout=True)):
        await fail(world, "node-1")
        await world.client.delete(PODS, "default", "p", grace_s=0)
        await world.wait(1000)
        assert not await world.is_deleted(attachment("a"), ATTACHMENTS)
        taint = {"key": "node.kubernetes.io/out-of-service", "value": "x", "effect": "NoExecute"}
        await world.patch(NODES, "node-1", {"spec": {"taints": [taint]}})
        await world.wait(3)
        assert await world.is_deleted(attachment("a"), ATTACHMENTS)


async def test_a_node_that_is_back_in_service_is_not_force_detached(world: World):
    """The cache still shows the taint. Once the node has unmounted the volume, it is detached all the same."""
    held, metrics = Held(world.server.transport(), world.clock, "/api/v1/nodes"), Registry()
    async with attached(world, transport=held, metrics=metrics):
        await fail(world, "node-1")
        taint = {"key": "node.kubernetes.io/out-of-service", "value": "x", "effect": "NoExecute"}
        await world.patch(NODES, "node-1", {"spec": {"taints": [taint]}})
        await world.wait(3)
        held.hold()
        await world.patch(NODES, "node-1", {"spec": {"taints": []}})
        await world.client.delete(PODS, "default", "p", grace_s=0)
        await world.wait(60)
        assert not await world.is_deleted(attachment("a"), ATTACHMENTS)
        assert 'forced_detaches{reason="out-of-service"} 1' not in metrics.expose().decode()
        await commands.recover(world.client, "node-1")
        await world.wait(300)
        assert await world.is_deleted(attachment("a"), ATTACHMENTS)


async def test_a_node_that_is_ready_again_is_not_force_detached(world: World):
    """The cache still shows that it is not. Once the node has unmounted the volume, it is detached all the same."""
    await bound(world, "a")
    held, metrics = Held(world.server.transport(), world.clock, "/api/v1/nodes"), Registry()
    async with running(world, transport=held, metrics=metrics):
        await start(world, "p", using("a"))
        await world.wait(3)
        await fail(world, "node-1")
        await world.client.delete(PODS, "default", "p", grace_s=0)
        await world.wait(340)
        held.hold()
        ready = {"type": "Ready", "status": "True"}
        await world.client.patch(NODES, "", "node-1", {"status": {"conditions": [ready]}}, subresource="status")
        await world.wait(60)
        assert not await world.is_deleted(attachment("a"), ATTACHMENTS)
        assert 'forced_detaches{reason="timeout"} 1' not in metrics.expose().decode()
        await commands.recover(world.client, "node-1")
        await world.wait(300)
        assert await world.is_deleted(attachment("a"), ATTACHMENTS)


async def test_a_ready_node_is_not_force_detached(world: World):
    async with attached(world):
        await fail(world, "node-1")
        ready = {"type": "Ready", "status": "True"}
        await world.client.patch(NODES, "", "node-1", {"status": {"conditions": [ready]}}, subresource="status")
        await world.client.delete(PODS, "default", "p", grace_s=0)
        await world.wait(1000)
        assert not await world.is_deleted(attachment("a"), ATTACHMENTS)
        await commands.recover(world.client, "node-1")
        await world.wait(5)
        assert await world.is_deleted(attachment("a"), ATTACHMENTS)


async def test_a_recreated_node_gets_its_volumes_attached_status(world: World):
    async with attached(world):
        node = await world.get(NODES, "node-1")
        await world.delete(NODES, "node-1")
        for field in ("uid", "resourceVersion"):
            del node["metadata"][field]
        del node["status"]
        await world.create(NODES, node)
        await world.wait(3)
        assert await reported(world) == [unique("a")]


# -- restarts and faults


async def test_the_next_manager_continues_from_the_attachments(world: World):
    for name in ("kept", "left", "half"):
        await bound(world, name)
    async with running(world):
        await start(world, "p", using("kept"))
        await start(world, "q", using("left"))
        await world.wait(3)
    await world.delete(PODS, "q")
    spec = {"attacher": DRIVER, "nodeName": "node-2", "source": {"persistentVolumeName": "v-half"}}
    await world.create(ATTACHMENTS, {"metadata": {"name": attachment("half", "node-2")}, "spec": spec})
    await world.wait(5)
    before = await world.get(ATTACHMENTS, attachment("kept"))
    async with running(world):
        await start(world, "r", using("half", "node-2"))
        await world.wait(5)
        assert await reported(world) == [unique("kept")]
        assert await world.is_deleted(attachment("left"), ATTACHMENTS)
        assert await reported(world, "node-2") == [unique("half")]
        assert await world.get(ATTACHMENTS, attachment("kept")) == before


async def test_volumes_stay_attached_while_a_pod_cannot_be_decoded(world: World):
    """After a restart its volumes are unknown; those of other namespaces are detached."""
    await world.create(resource("namespaces", namespaced=False), {"metadata": {"name": "other"}})
    await world.create(resource("serviceaccounts"), {"metadata": {"name": "default"}}, "other")
    await bound(world, "a")
    await bound(world, "b", namespace="other")
    async with running(world):
        await start(world, "p", using("a"))
        await world.create(PODS, pod_of("q", using("b")), "other")
        await world.wait(5)
    store = world.server.store
    (stored,) = store.list(PODS.gvr, "default")
    store.update(PODS.gvr, "default", "p", {**stored.copy(), "spec": "none"})
    await world.client.delete(PODS, "other", "q", grace_s=0)
    await world.wait(5)
    node = await world.get(NODES, "node-1")
    await world.client.patch(NODES, "", "node-1", {"status": {"volumesInUse": None}}, subresource="status")
    assert node["status"]["volumesAttached"]
    async with running(world):
        await world.wait(400)
        assert await reported(world) == [unique("a")]
        assert await world.is_deleted(attachment("b"), ATTACHMENTS)
        store.delete(PODS.gvr, "default", "p")
        await world.wait(100)
        assert await reported(world) == []
        assert await world.is_deleted(attachment("a"), ATTACHMENTS)


@pytest.mark.parametrize("kind", [CLAIMS, VOLUMES], ids=["claim", "volume"])
async def test_volumes_stay_attached_while_a_claim_or_volume_cannot_be_decoded(world: World, kind):
    """After a restart it is unknown which pod needs them; those that no pod of the node may need are detached."""
    for name in ("a", "b", "c"):
        await bound(world, name)
    async with running(world):
        await start(world, "p", using("a"))
        await start(world, "q", using("b"))
        await start(world, "r", using("c", "node-2"))
        await world.wait(5)
    store, namespace = world.server.store, "default" if kind is CLAIMS else ""
    for name in ("a", "c"):
        known = name if kind is CLAIMS else f"v-{name}"
        docs = [one.copy() for one in store.list(kind.gvr, namespace)]
        (doc,) = (one for one in docs if one["metadata"]["name"] == known)
        store.update(kind.gvr, namespace, known, {**doc, "spec": "none"})
    for pod in ("q", "r"):
        await world.client.delete(PODS, "default", pod, grace_s=0)
    await world.wait(5)
    for node in ("node-1", "node-2"):
        await world.client.patch(NODES, "", node, {"status": {"volumesInUse": None}}, subresource="status")
    async with running(world):
        await world.wait(400)
        assert await reported(world) == [unique("a")]
        assert not await world.is_deleted(attachment("a"), ATTACHMENTS)
        assert await world.is_deleted(attachment("b"), ATTACHMENTS)
        assert await world.is_deleted(attachment("c", "node-2"), ATTACHMENTS)
        await world.client.delete(PODS, "default", "p", grace_s=0)
        await world.wait(100)
        assert await world.is_deleted(attachment("a"), ATTACHMENTS)


def pod_of(name: str, spec: dict) -> dict:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


async def test_volumes_of_unknown_plugins_are_not_changed(world: World):
    other = {"name": "example.com/flex/v", "devicePath": "/dev/x"}
    await world.client.patch(NODES, "", "node-1", {"status": {"volumesAttached": [other]}}, subresource="status")
    await bound(world, "a")
    async with running(world):
        await start(world, "p", using("a"))
        await world.wait(400)
        node = await world.get(NODES, "node-1")
        assert node["status"]["volumesAttached"] == [other, {"name": unique("a"), "devicePath": ""}]


@pytest.mark.cluster(heartbeat_s=10)
async def test_an_unneeded_attachment_is_deleted_also_without_a_node(world: World):
    await bound(world, "a")
    spec = {"attacher": DRIVER, "nodeName": "node-1", "source": {"persistentVolumeName": "v-a"}}
    await world.create(ATTACHMENTS, {"metadata": {"name": attachment("a")}, "spec": spec})
    async with running(world):
        await world.wait(400)  # the node's next report says that nothing is mounted
        assert await world.is_deleted(attachment("a"), ATTACHMENTS)


async def test_an_attachment_deleted_by_another_client_is_recreated(world: World):
    async with attached(world):
        await world.delete(ATTACHMENTS, attachment("a"))
        await world.wait(3)
        assert await world.is_deleted(attachment("a"), ATTACHMENTS)
        await world.wait(70)
        assert (await world.get(ATTACHMENTS, attachment("a")))["status"]["attached"] is True
        assert await reported(world) == [unique("a")]


async def test_deleted_attachments_are_not_looked_for_if_disabled(world: World):
    async with attached(world, AttachDetachConfig(disable_reconciler_sync=True)):
        await world.delete(ATTACHMENTS, attachment("a"))
        await world.wait(300)
        assert await world.is_deleted(attachment("a"), ATTACHMENTS)


async def test_a_failed_attacher_is_waited_for(world: World):
    await bound(world, "a", source={"csi": {"driver": "slow.example.com", "volumeHandle": "h-a"}})
    metrics = Registry()
    async with running(world, metrics=metrics):
        await start(world, "p", using("a"))
        await world.wait(3)
        (made,) = await world.items(ATTACHMENTS)
        name = made["metadata"]["name"]

        async def say(status: dict) -> None:
            await world.client.patch(ATTACHMENTS, "", name, {"status": status}, subresource="status")

        await say({"attached": False, "attachError": {"message": "no such disk"}})
        await world.wait(3)
        text = 'AttachVolume.Attach failed for volume "v-a" : no such disk'
        assert ("FailedAttachVolume", text) in await world.events("p")
        assert await reported(world) == []
        await say({"attached": True, "attachError": None})
        await world.wait(10)
        assert await reported(world) == ["kubernetes.io/csi/slow.example.com^h-a"]
        failed = 'operation_name="volume_attach",status="fail-unknown",volume_plugin="kubernetes.io/csi:slow.exam'
        assert failed in metrics.expose().decode()


async def test_an_unresponsive_attacher_is_reported_after_two_minutes(world: World):
    await bound(world, "a", source={"csi": {"driver": "slow.example.com", "volumeHandle": "h-a"}})
    async with running(world):
        await start(world, "p", using("a"))
        await world.wait(119)
        assert await world.events("p") == [] or "FailedAttachVolume" not in str(await world.events("p"))
        await world.wait(3)
        text = "timed out waiting for external-attacher of slow.example.com CSI driver to attach volume h-a"
        assert text in str(await world.events("p"))


@pytest.mark.parametrize("method", ["POST", "DELETE", "PATCH"])
async def test_lost_requests_are_retried(world: World, method):
    await bound(world, "a")
    left = {"n": 2}

    def loses(request: Request) -> bool:
        own = "volumeattachments" in request.path or "/nodes/" in request.path
        if request.method != method or not own or not left["n"]:
            return False
        left["n"] -= 1
        return True

    async with running(world, transport=Refusing(world.server.transport(), loses)):
        await start(world, "p", using("a"))
        await world.wait(10)
        assert await reported(world) == [unique("a")]
        await world.delete(PODS, "p")
        await world.wait(20)
        assert left["n"] == 0
        assert await world.is_deleted(attachment("a"), ATTACHMENTS)
        assert await reported(world) == []


async def test_a_volume_is_removed_from_the_node_status_before_it_is_detached(world: World):
    await bound(world, "a")
    order: list[str] = []

    def note(request: Request) -> bool:
        if request.method == "DELETE" and "volumeattachments" in request.path:
            order.append("detach")
        if request.method == "PATCH" and request.path.endswith("/nodes/node-1/status"):
            reported_now = json.loads(request.body)["status"]["volumesAttached"]
            order.append("reported" if reported_now else "not reported")
        return False

    async with running(world, transport=Refusing(world.server.transport(), note)):
        await start(world, "p", using("a"))
        await world.wait(3)
        await world.delete(PODS, "p")
        await world.wait(5)
        assert order == ["reported", "not reported", "detach"]


async def test_a_volume_without_an_attachment_is_detached_also_if_the_cache_never_had_it(world: World):
    source = {"csi": {"driver": "slow.example.com", "volumeHandle": "h-a"}}
    await bound(world, "a", source=source)
    name, kept = "kubernetes.io/csi/slow.example.com^h-a", {"finalizers": ["example.com/attached"]}
    made = attachment_name("slow.example.com", "h-a", "node-1")
    status = {"volumesAttached": [{"name": name, "devicePath": ""}], "volumesInUse": [name]}
    await commands.fail(world.client, "node-1")
    await world.client.patch(NODES, "", "node-1", {"status": status}, subresource="status")
    path = "/apis/storage.k8s.io/v1/volumeattachments"
    held = Held(world.server.transport(), world.clock, path)
    async with running(world, transport=held):
        await start(world, "q", using("a", "node-2"))
        await world.wait(3)
        held.hold()
        spec = {"attacher": "slow.example.com", "nodeName": "node-1", "source": {"persistentVolumeName": "v-a"}}
        await world.create(ATTACHMENTS, {"metadata": {"name": made, **kept}, "spec": spec})
        await world.client.patch(NODES, "", "node-1", {"status": {"volumesInUse": None}}, subresource="status")
        await world.wait(3)
        assert "deletionTimestamp" in (await world.get(ATTACHMENTS, made))["metadata"]
        assert [one["metadata"]["name"] for one in await world.items(ATTACHMENTS)] == [made]
        await world.patch(ATTACHMENTS, made, {"metadata": {"finalizers": None}})
        held.release()
        await world.wait(3)
        assert [one["spec"]["nodeName"] for one in await world.items(ATTACHMENTS)] == ["node-2"]


async def test_volumes_are_counted(world: World):
    await bound(world, "a")
    await bound(world, "b", ["ReadWriteMany"])
    await world.create(DRIVERS, {"metadata": {"name": "d.example.com"}, "spec": {"attachRequired": False}})
    await bound(world, "c", source={"csi": {"driver": "d.example.com", "volumeHandle": "h-c"}})
    metrics = Registry()
    async with running(world, metrics=metrics):
        await start(world, "p", using("a"))
        await start(world, "q", using("b", "node-2"))
        await start(world, "r", using("b", "node-2"))
        await start(world, "s", using("c"))
        await world.wait(3)

        def counts() -> list[str]:
            lines = metrics.expose().decode().splitlines()
            names = ("attachdetach_controller_total_volumes{", "storage_count_attachable_volumes_in_use{")
            return sorted(line.replace(DRIVER, "D") for line in lines if line.startswith(names))

        plugin = "kubernetes.io/csi:D"
        assert counts() == [
            f'attachdetach_controller_total_volumes{{plugin_name="{plugin}",state="actual_state_of_world"}} 2',
            f'attachdetach_controller_total_volumes{{plugin_name="{plugin}",state="desired_state_of_world"}} 2',
            f'storage_count_attachable_volumes_in_use{{node="node-1",volume_plugin="{plugin}"}} 1',
            'storage_count_attachable_volumes_in_use{node="node-1",volume_plugin="kubernetes.io/csi:d.example.com"} 1',
            f'storage_count_attachable_volumes_in_use{{node="node-2",volume_plugin="{plugin}"}} 2',
        ]
        for pod in ("p", "q", "r", "s"):
            await world.delete(PODS, pod)
        await world.wait(5)
        assert counts() == []


async def test_an_ephemeral_volume_of_another_pod_is_not_attached(world: World):
    await bound(world, "p-data")
    template = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    async with running(world):
        await start(world, "p", using("", volumes=[{"name": "data", "ephemeral": {"volumeClaimTemplate": template}}]))
        await world.wait(3)
        assert await reported(world) == []
        uid = (await world.get(PODS, "p"))["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": True}
        await world.patch(CLAIMS, "p-data", {"metadata": {"ownerReferences": [owner]}})
        await world.wait(3)
        assert await reported(world) == [unique("p-data")]


async def test_events_name_only_pods_of_the_own_namespace(world: World):
    await bound(world, "a")
    other = resource("namespaces", namespaced=False)
    await world.create(other, {"metadata": {"name": "other"}})
    await world.create(resource("serviceaccounts"), {"metadata": {"name": "default"}}, "other")
    async with running(world):
        await start(world, "p", using("a"))
        await world.wait(3)
        same = {"csi": {"driver": DRIVER, "volumeHandle": "h-a"}}
        await bound(world, "b", source=same, namespace="other")
        spec = {"containers": [{"name": "c", "image": "nginx"}], **using("b", "node-2")}
        delay = {"sandbox.kcm.dev/start-delay": "1500ms"}
        await world.create(PODS, {"metadata": {"name": "q", "annotations": delay}, "spec": spec}, "other")
        await world.wait(3)
        events = await world.items(resource("events"), "other")
        text = 'Multi-Attach error for volume "v-b" Volume is already used by 1 pod(s) in different namespaces'
        assert text in [event["message"] for event in events]


async def test_a_pod_with_a_volume_runs(world: World):
    """Claim, provisioning, binding, scheduling, attaching, mounting; and back."""
    binder, ephemeral = "persistentvolume-binder-controller", "ephemeral-volume-controller"
    parts = (CONFIG, PersistentVolumeBinderConfig(), EphemeralVolumeConfig())
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volume = {"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": wanted}}}
    async with controllers(world, *parts, names=[NAME, binder, ephemeral]):
        await start(world, "p", {"volumes": [volume], "terminationGracePeriodSeconds": 1})
        await world.wait(10)
        node = await world.node_of("p")
        (made,) = await world.items(ATTACHMENTS)
        assert (made["spec"]["nodeName"], made["status"]["attached"]) == (node, True)
        assert len(await reported(world, node)) == 1
        assert await reported(world, node) == await in_use(world, node)
        assert (await world.status("p"))["phase"] == "Running"
        await world.delete(PODS, "p")
        await world.wait(10)
        assert (await reported(world, node), await in_use(world, node), await world.items(ATTACHMENTS)) == (
            [],
            [],
            [],
        )


@pytest.mark.parametrize("seed", range(4))
async def test_nodes_end_with_the_volumes_of_their_pods_under_faults(world: World, seed):
    """Pods come and go on three nodes, managers die, a third of all writes is lost or their answers are."""
    rng = random.Random(seed)
    claims = [f"c{number}" for number in range(6)]
    for number, claim in enumerate(claims):
        await bound(world, claim, ["ReadWriteMany"] if number % 2 else None)
    pods: dict[str, tuple[str, str]] = {}
    for life_time in range(3):
        async with running(world, transport=Faulty(world.server.transport(), rng, 0.3)):
            for step in range(12):
                if pods and rng.random() < 0.4:
                    await world.delete(PODS, rng.choice(sorted(pods)))
                else:
                    name, node = f"p{life_time}-{step}", f"node-{rng.randint(1, 3)}"
                    await start(world, name, using(rng.choice(claims), node))
                pods = await living(world)
                await world.wait(rng.random() * 3)
    await alone(world, pods)
    async with running(world):
        await world.wait(200)
        pods = await living(world)
        needed = {(unique(claim), node) for claim, node in pods.values()}
        for node in ("node-1", "node-2", "node-3"):
            assert await reported(world, node) == sorted(name for name, at in needed if at == node)
        attached = {one["metadata"]["name"] for one in await world.items(ATTACHMENTS)}
        assert attached == {attachment(claim, node) for claim, node in pods.values()}


async def living(world: World) -> dict[str, tuple[str, str]]:
    """The claim and node of each pod."""
    items = await world.items(PODS)
    return {
        item["metadata"]["name"]: (
            item["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"],
            item["spec"]["nodeName"],
        )
        for item in items
        if "deletionTimestamp" not in item["metadata"]
    }


async def alone(world: World, pods: dict[str, tuple[str, str]]) -> None:
    """Delete pods until each volume for one node only is needed on one node only."""
    nodes: dict[str, str] = {}
    for name, (claim, node) in sorted(pods.items()):
        if int(claim[1:]) % 2 == 0 and nodes.setdefault(claim, node) != node:
            await world.delete(PODS, name)
