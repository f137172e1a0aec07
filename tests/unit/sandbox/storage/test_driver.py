"""The simulated storage driver with the scheduler and the controllers for volumes."""

import json

import pytest

from kcm_cli.controllers.persistentvolume_attach_detach.config import AttachDetachConfig
from kcm_cli.controllers.persistentvolume_binder.config import PersistentVolumeBinderConfig
from kcm_cli.sandbox.apiserver.entry.fault import Fault
from tests.kit.controlling import controllers
from tests.kit.world import NODES, World, resource

CLAIMS = resource("persistentvolumeclaims")
VOLUMES = resource("persistentvolumes", namespaced=False)
CLASSES = resource("storageclasses", "storage.k8s.io", namespaced=False)
ATTACHMENTS = resource("volumeattachments", "storage.k8s.io", namespaced=False)
CSI_NODES = resource("csinodes", "storage.k8s.io", namespaced=False)

ZONE = "topology.kubernetes.io/zone"
SELECTED = "volume.kubernetes.io/selected-node"
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


def binder(world: World):
    """The controllers that provision, bind and attach volumes."""
    names = ["persistentvolume-binder-controller", "persistentvolume-attach-detach-controller"]
    return controllers(world, PersistentVolumeBinderConfig(), AttachDetachConfig(), names=names)


def place(name: str, node: str, size: str = "1Gi", **spec) -> dict:
    """A volume on one node."""
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]
    whole = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "standard",
        "local": {"path": "/x"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        **spec,
    }
    return {"metadata": {"name": name}, "spec": whole}


async def remove_claim(world: World) -> None:
    await world.patch(CLAIMS, "data", {"metadata": {"finalizers": None}})
    await world.delete(CLAIMS, "data")


async def test_there_is_a_default_class_and_every_node_has_the_driver(world: World):
    standard = await world.get(CLASSES, "standard")
    assert standard["metadata"]["annotations"] == {"storageclass.kubernetes.io/is-default-class": "true"}
    assert standard["volumeBindingMode"] == "WaitForFirstConsumer"
    assert await names(world, CSI_NODES) == ["node-1", "node-2", "node-3"]


async def test_the_first_consumer_gets_a_volume_and_then_runs(world: World):
    async with binder(world):
        await world.create(CLAIMS, claim())
        await world.wait(20)
        assert await names(world, VOLUMES) == []
        await world.pod("a", MOUNT)
        await world.wait(20)
        data = await world.get(CLAIMS, "data")
        volume = await world.get(VOLUMES, data["spec"]["volumeName"])
        assert volume["spec"]["capacity"] == {"storage": "1Gi"}
        assert volume["spec"]["claimRef"]["uid"] == data["metadata"]["uid"]
        assert (volume["status"]["phase"], data["status"]["phase"]) == ("Bound", "Bound")
        selected = data["metadata"]["annotations"]["volume.kubernetes.io/selected-node"]
        assert await world.node_of("a") == selected
        status = await world.status("a")
        assert (status["phase"], status.get("nominatedNodeName")) == ("Running", None)
    reasons = [reason for reason, _ in await world.events("data")]
    assert {"WaitForFirstConsumer", "ExternalProvisioning", "ProvisioningSucceeded"} <= {*reasons}
    assert reasons.count("ProvisioningSucceeded") == 1


async def test_without_a_binder_no_volume_is_provisioned(world: World):
    await world.create(CLAIMS, claim())
    await world.pod("a", MOUNT)
    await world.wait(60)
    assert await names(world, VOLUMES) == []
    data = await world.get(CLAIMS, "data")
    assert data["status"] == {"phase": "Pending"}
    assert await world.node_of("a") == ""
    selected = data["metadata"]["annotations"]["volume.kubernetes.io/selected-node"]
    assert (await world.status("a"))["nominatedNodeName"] == selected


async def test_an_existing_volume_determines_the_node(world: World):
    await world.create(VOLUMES, place("there", "node-2", "5Gi"))
    await world.create(VOLUMES, place("kept", "node-3", claimRef={"namespace": "default", "name": "other"}))
    async with binder(world):
        await world.wait(5)
        await world.create(CLAIMS, claim())
        await world.wait(20)
        assert (await world.get(CLAIMS, "data"))["status"]["phase"] == "Pending"
        await world.pod("a", {**MOUNT, "nodeSelector": {"kubernetes.io/hostname": "node-2"}})
        await world.wait(20)
        assert (await world.get(CLAIMS, "data"))["spec"]["volumeName"] == "there"
        assert await world.node_of("a") == "node-2"
        there = await world.get(VOLUMES, "there")
        assert there["metadata"]["annotations"] == {"pv.kubernetes.io/bound-by-controller": "yes"}
        assert there["status"]["phase"] == "Bound"


async def test_a_volume_reserved_for_the_claim_is_bound(world: World):
    await world.create(VOLUMES, place("small", "node-1"))
    await world.create(VOLUMES, place("kept", "node-3", "9Gi", claimRef={"namespace": "default", "name": "data"}))
    async with binder(world):
        await world.create(CLAIMS, claim())
        await world.pod("a", MOUNT)
        await world.wait(30)
        assert (await world.get(CLAIMS, "data"))["spec"]["volumeName"] == "kept"
        assert await world.node_of("a") == "node-3"


async def test_immediate_binding_provisions_at_once(world: World):
    await world.create(CLASSES, {"metadata": {"name": "now"}, "provisioner": "csi.sandbox.kcm.dev"})
    doc = claim()
    doc["spec"]["storageClassName"] = "now"
    async with binder(world):
        await world.create(CLAIMS, doc)
        await world.wait(20)
        assert (await world.get(CLAIMS, "data"))["status"]["phase"] == "Bound"


@pytest.mark.parametrize(
    ("parts", "zones"),
    [
        ({"volumeBindingMode": "WaitForFirstConsumer"}, ["zone-c"]),
        ({}, ["zone-a", "zone-b", "zone-c"]),
        ({"allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["zone-a"]}]}]}, ["zone-a"]),
    ],
)
async def test_a_volume_of_one_zone_is_accessible_from_there_only(world: World, parts: dict, zones: list[str]):
    zonal = {"metadata": {"name": "zonal"}, "provisioner": "csi.sandbox.kcm.dev", "parameters": {"topology": ZONE}}
    await world.create(CLASSES, {**zonal, **parts})
    doc = claim()
    doc["spec"]["storageClassName"] = "zonal"
    async with binder(world):
        await world.create(CLAIMS, doc)
        await world.pod("a", {**MOUNT, "nodeSelector": {ZONE: "zone-c"}})
        await world.wait(40)
        volume = await world.get(VOLUMES, (await world.get(CLAIMS, "data"))["spec"]["volumeName"])
        ((there,),) = (
            term["matchExpressions"] for term in volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
        )
        assert there["key"] == ZONE
        assert there["values"][0] in zones
        assert bool(await world.node_of("a")) == (there["values"] == ["zone-c"])


async def test_a_pod_whose_volume_is_unbound_is_scheduled_again(world: World):
    """For example, if the binder of another manager reverts what the scheduler has reserved."""
    await world.create(VOLUMES, place("v", "node-2"))
    await world.client.patch(VOLUMES, "", "v", {"status": {"phase": "Available"}}, subresource="status")
    await world.create(CLAIMS, claim())
    await world.pod("a", {**MOUNT, "nodeSelector": {"kubernetes.io/hostname": "node-2"}})
    await world.wait(5)
    assert (await world.get(VOLUMES, "v"))["spec"]["claimRef"]["name"] == "data"
    await world.patch(VOLUMES, "v", {"spec": {"claimRef": None}})
    await world.wait(2)
    async with binder(world):
        await world.wait(60)
        assert await world.node_of("a") == "node-2"


async def test_provisioning_can_take_its_time(world: World):
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


@pytest.mark.parametrize("at_s", [1, 14])
async def test_a_claim_whose_node_is_gone_before_it_has_a_volume_gets_another_one(world: World, at_s: int):
    async with binder(world):
        await world.create(CLAIMS, claim(**{"sandbox.kcm.dev/provision-delay": "30s"}))
        await world.pod("a", MOUNT)
        await world.wait(15 + at_s)
        gone = (await world.get(CLAIMS, "data"))["metadata"]["annotations"][SELECTED]
        await world.delete(NODES, gone)
        await world.wait(60)
        data = await world.get(CLAIMS, "data")
        assert data["status"]["phase"] == "Bound"
        assert data["metadata"]["annotations"][SELECTED] == await world.node_of("a")
        assert await world.node_of("a") not in ("", gone)
        assert ("ProvisioningFailed", f'node "{gone}" not found') in await world.events("data")


async def test_a_claim_with_a_selector_is_not_provisioned(world: World):
    await world.create(CLASSES, {"metadata": {"name": "now"}, "provisioner": "csi.sandbox.kcm.dev"})
    selecting = claim()
    selecting["spec"] |= {"selector": {}, "storageClassName": "now"}
    async with binder(world):
        await world.create(CLAIMS, selecting)
        await world.wait(30)
        assert await names(world, VOLUMES) == []
        why = 'failed to provision volume with StorageClass "now": claim Selector is not supported'
        assert ("ProvisioningFailed", why) in await world.events("data")
        await world.create(VOLUMES, place("there", "node-1", storageClassName="now"))
        await world.wait(60)
        assert (await world.get(CLAIMS, "data"))["spec"]["volumeName"] == "there"


async def test_a_claim_with_data_of_a_kind_of_others_is_left_to_a_populator(world: World):
    sources = {"a": "PersistentVolumeClaim", "b": "Backup"}
    async with binder(world):
        for name, kind in sources.items():
            doc = claim(**{SELECTED: "node-1"})
            doc["metadata"]["name"] = name
            group = {} if name == "a" else {"apiGroup": "example.com"}
            doc["spec"]["dataSourceRef"] = {"kind": kind, "name": "source", **group}
            await world.create(CLAIMS, doc)
        await world.wait(30)
        phases = [(await world.get(CLAIMS, name))["status"]["phase"] for name in sources]
        assert phases == ["Bound", "Pending"]
        assert ("Provisioning", "Assuming an external populator will provision the volume") in await world.events("b")


async def test_volumes_are_expanded_and_deleted_with_their_claims(world: World):
    async with binder(world):
        await world.create(CLAIMS, claim(**{"volume.kubernetes.io/selected-node": "node-1"}))
        await world.wait(20)
        name = (await world.get(CLAIMS, "data"))["spec"]["volumeName"]
        await world.patch(CLAIMS, "data", {"spec": {"resources": {"requests": {"storage": "3Gi"}}}})
        await world.wait()
        status = (await world.get(CLAIMS, "data"))["status"]
        assert status["capacity"] == {"storage": "3Gi"}
        assert not status.get("conditions")
        assert (await world.get(VOLUMES, name))["spec"]["capacity"] == {"storage": "3Gi"}
        await remove_claim(world)
        await world.wait()
        left = (await world.get(VOLUMES, name))["metadata"]
        assert (left["finalizers"], "deletionTimestamp" in left) == (["kubernetes.io/pv-protection"], True)


async def test_a_released_volume_is_deleted_by_its_provisioner_only(world: World):
    gone = {"namespace": "default", "name": "gone", "uid": "u"}
    for at, provisioner in enumerate(("csi.sandbox.kcm.dev", "other.example.com", "")):
        volume = place(f"v{at}", "node-1", claimRef=gone, persistentVolumeReclaimPolicy="Delete")
        volume["metadata"]["annotations"] = {"pv.kubernetes.io/provisioned-by": provisioner}
        volume["spec"]["csi"] = {"driver": "d.example.com", "volumeHandle": f"h{at}"}
        del volume["spec"]["local"]
        await world.create(VOLUMES, volume)
    async with binder(world):
        await world.wait(60)
        assert (await world.get(VOLUMES, "v1"))["status"]["phase"] in ("Released", "Failed")
        volumes = [await world.get(VOLUMES, name) for name in ("v0", "v1", "v2")]
        assert ["deletionTimestamp" in volume["metadata"] for volume in volumes] == [True, False, False]


async def test_a_volume_deleted_before_its_claim_is_removed_with_it(world: World):
    async with binder(world):
        await world.create(CLAIMS, claim(**{"volume.kubernetes.io/selected-node": "node-1"}))
        await world.wait(20)
        name = (await world.get(CLAIMS, "data"))["spec"]["volumeName"]
        await world.delete(VOLUMES, name)
        await world.patch(
            VOLUMES, name, {"metadata": {"finalizers": ["external-provisioner.volume.kubernetes.io/finalizer"]}}
        )
        await world.wait(20)
        assert (await world.get(CLAIMS, "data"))["status"]["phase"] == "Bound"
        await remove_claim(world)
        await world.wait(5)
        assert await world.is_deleted(name, VOLUMES)


async def test_volumes_are_attached_and_detached(world: World):
    spec = {"attacher": "csi.sandbox.kcm.dev", "nodeName": "node-1", "source": {"persistentVolumeName": "pv"}}
    await world.create(ATTACHMENTS, {"metadata": {"name": "x"}, "spec": spec})
    await world.create(ATTACHMENTS, {"metadata": {"name": "y"}, "spec": {**spec, "attacher": "other"}})
    await world.wait()
    assert (await world.get(ATTACHMENTS, "x"))["status"]["attached"] is True
    assert not (await world.get(ATTACHMENTS, "y")).get("status", {}).get("attached")
    await world.delete(ATTACHMENTS, "x")
    await world.wait()
    assert await names(world, ATTACHMENTS) == ["y"]


async def test_an_attachment_that_is_created_again_is_attached_as_any_other(world: World):
    faults = world.server.api.faults
    faults.add(Fault("delay", verbs=("patch",), resources=("volumeattachments/status",), delay_s=2, times=1))
    spec = {"attacher": "csi.sandbox.kcm.dev", "nodeName": "node-1", "source": {"persistentVolumeName": "pv"}}
    await world.create(ATTACHMENTS, {"metadata": {"name": "x"}, "spec": spec})
    await world.wait()
    await world.patch(ATTACHMENTS, "x", {"metadata": {"finalizers": None}})
    await world.delete(ATTACHMENTS, "x")
    await world.create(ATTACHMENTS, {"metadata": {"name": "x"}, "spec": spec})
    await world.wait(5)
    again = await world.get(ATTACHMENTS, "x")
    assert again["status"]["attached"] is True
    assert again["metadata"]["finalizers"] == ["external-attacher/csi-sandbox-kcm-dev"]


async def test_a_claim_that_is_created_again_is_not_expanded_for_the_former_one(world: World):
    faults = world.server.api.faults
    async with binder(world):
        await world.create(CLAIMS, claim(**{"volume.kubernetes.io/selected-node": "node-1"}))
        await world.wait(20)
        faults.add(Fault("delay", verbs=("patch",), resources=("persistentvolumeclaims/status",), delay_s=2, times=1))
        await world.patch(CLAIMS, "data", {"spec": {"resources": {"requests": {"storage": "3Gi"}}}})
        await world.wait()
        await remove_claim(world)
        await world.create(CLAIMS, claim())
        await world.wait(5)
        assert (await world.get(CLAIMS, "data"))["status"] == {"phase": "Pending"}
