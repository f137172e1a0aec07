"""The simulated storage driver with the scheduler; the test does what the volume controllers would do."""

import json

from tests.unit.sandbox.nodes.world import World, resource

CLAIMS = resource("persistentvolumeclaims")
VOLUMES = resource("persistentvolumes", namespaced=False)
CLASSES = resource("storageclasses", "storage.k8s.io", namespaced=False)
ATTACHMENTS = resource("volumeattachments", "storage.k8s.io", namespaced=False)
CSI_NODES = resource("csinodes", "storage.k8s.io", namespaced=False)

PROVISIONER = "volume.kubernetes.io/storage-provisioner"
MOUNT = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}


def claim(**annotations: str) -> dict:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "standard",
    }
    return {"metadata": {"name": "data", "annotations": annotations}, "spec": spec}


async def names(world: World, kind) -> list[str]:
    listed = json.loads(await world.client.list_page(kind, "default" if kind.namespaced else ""))
    return [item["metadata"]["name"] for item in listed["items"]]


async def bind(world: World) -> str:
    """As the volume controller binds a claim to the volume that was made for it."""
    (name,) = await names(world, VOLUMES)
    volume = await world.get(VOLUMES, name)
    annotations = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}
    await world.client.patch(VOLUMES, "", name, {"status": {"phase": "Bound"}}, subresource="status")
    await world.patch(CLAIMS, "data", {"metadata": {"annotations": annotations}, "spec": {"volumeName": name}})
    status = {"phase": "Bound", "capacity": volume["spec"]["capacity"], "accessModes": ["ReadWriteOnce"]}
    await world.client.patch(CLAIMS, "default", "data", {"status": status}, subresource="status")
    return name


def test_there_is_a_default_class_and_every_node_has_the_driver(play):
    async def run(world: World) -> None:
        standard = await world.get(CLASSES, "standard")
        assert standard["metadata"]["annotations"] == {"storageclass.kubernetes.io/is-default-class": "true"}
        assert standard["volumeBindingMode"] == "WaitForFirstConsumer"
        assert await names(world, CSI_NODES) == ["node-1", "node-2", "node-3"]

    play(run)


def test_the_first_consumer_gets_a_volume_and_then_runs(play):
    async def run(world: World) -> None:
        await world.create(CLAIMS, claim())
        await world.wait()
        assert await names(world, VOLUMES) == []
        await world.pod("a", MOUNT)
        await world.wait()
        selected = (await world.get(CLAIMS, "data"))["metadata"]["annotations"]["volume.kubernetes.io/selected-node"]
        assert await world.node_of("a") == ""
        await world.patch(CLAIMS, "data", {"metadata": {"annotations": {PROVISIONER: "csi.sandbox.kcm.dev"}}})
        await world.wait()
        name = await bind(world)
        volume = await world.get(VOLUMES, name)
        assert volume["spec"]["capacity"] == {"storage": "1Gi"}
        assert volume["spec"]["claimRef"]["name"] == "data"
        await world.wait(2)
        assert await world.node_of("a") == selected
        assert (await world.status("a"))["phase"] == "Running"
        reasons = [reason for reason, _ in await world.events("data")]
        assert "ProvisioningSucceeded" in reasons

    play(run)


def test_provisioning_can_take_its_time(play):
    async def run(world: World) -> None:
        annotations = {
            PROVISIONER: "csi.sandbox.kcm.dev",
            "volume.kubernetes.io/selected-node": "node-1",
            "sandbox.kcm.dev/provision-delay": "30s",
        }
        await world.create(CLAIMS, claim(**annotations))
        await world.wait(29)
        assert await names(world, VOLUMES) == []
        await world.wait(2)
        assert len(await names(world, VOLUMES)) == 1

    play(run)


def test_volumes_grow_and_go_with_their_claims(play):
    async def run(world: World) -> None:
        selected = {PROVISIONER: "csi.sandbox.kcm.dev", "volume.kubernetes.io/selected-node": "node-1"}
        await world.create(CLAIMS, claim(**selected))
        await world.wait()
        name = await bind(world)
        await world.patch(CLAIMS, "data", {"spec": {"resources": {"requests": {"storage": "3Gi"}}}})
        await world.wait()
        status = (await world.get(CLAIMS, "data"))["status"]
        assert status["capacity"] == {"storage": "3Gi"}
        assert not status.get("conditions")
        assert (await world.get(VOLUMES, name))["spec"]["capacity"] == {"storage": "3Gi"}
        await world.client.patch(VOLUMES, "", name, {"status": {"phase": "Released"}}, subresource="status")
        await world.wait()
        left = await world.get(VOLUMES, name)
        assert left["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]
        assert left["metadata"]["deletionTimestamp"]

    play(run)


def test_volumes_are_attached_and_detached(play):
    async def run(world: World) -> None:
        spec = {"attacher": "csi.sandbox.kcm.dev", "nodeName": "node-1", "source": {"persistentVolumeName": "pv"}}
        await world.create(ATTACHMENTS, {"metadata": {"name": "x"}, "spec": spec})
        await world.create(ATTACHMENTS, {"metadata": {"name": "y"}, "spec": {**spec, "attacher": "other"}})
        await world.wait()
        assert (await world.get(ATTACHMENTS, "x"))["status"]["attached"] is True
        assert not (await world.get(ATTACHMENTS, "y")).get("status", {}).get("attached")
        await world.delete(ATTACHMENTS, "x")
        await world.wait()
        assert await names(world, ATTACHMENTS) == ["y"]

    play(run)
