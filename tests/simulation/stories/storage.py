"""Volumes and claims."""

from typing import Any

from kcm_cli.sandbox.storage.plan import DRIVER
from tests.kit.simulation import World
from tests.simulation.stories.kit import (
    NAMESPACE,
    PODS,
    Step,
    Story,
    Tree,
    create,
    delete,
    kind,
    patch,
    pod_spec,
    together,
    wide,
)

CLAIMS, VOLUMES = kind("v1/persistentvolumeclaims"), wide("v1/persistentvolumes")
CLASSES = wide("storage.k8s.io/v1/storageclasses")
ATTRIBUTES = wide("storage.k8s.io/v1/volumeattributesclasses")
ONCE = ["ReadWriteOnce"]


def claim(name: str, **fields: Any) -> Step:
    size = {"requests": {"storage": "1Gi"}}
    return create(CLAIMS, name, spec={"accessModes": ONCE, "resources": size, "storageClassName": "gold", **fields})


def volume(name: str, **fields: Any) -> Step:
    source = {} if "csi" in fields or "flexVolume" in fields else {"nfs": {"server": "h", "path": "/x"}}
    fields = {"accessModes": ONCE, "capacity": {"storage": "1Gi"}, "storageClassName": "gold", **source, **fields}
    return create(VOLUMES, name, spec=fields)


def csi(handle: str) -> Tree:
    return {"csi": {"driver": DRIVER, "volumeHandle": handle}}


def grow(name: str) -> Step:
    return patch(CLAIMS, name, {"spec": {"resources": {"requests": {"storage": "2Gi"}}}})


def using(name: str, **fields: Any) -> Tree:
    return pod_spec(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": name}}], **fields)


def bound(name: str, **source: Any) -> Step:
    """A claim that is bound to a separate volume."""

    async def step(world: World) -> None:
        await claim(name, volumeName=f"v-{name}")(world)
        uid = (await world.client.get_doc(CLAIMS, NAMESPACE, name))["metadata"]["uid"]
        ref = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": NAMESPACE, "name": name, "uid": uid}
        await volume(f"v-{name}", claimRef=ref, **source)(world)

    return step


TEMPLATE = {"spec": {"accessModes": ONCE, "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "gold"}}
FLEXIBLE = create(CLASSES, "gold", provisioner="d.example.com", allowVolumeExpansion=True)

STORIES = {
    "binding": Story(
        about=("persistentvolume-binder", "persistentvolume-protection", "persistentvolumeclaim-protection"),
        steps=(
            volume("v", persistentVolumeReclaimPolicy="Retain"),
            together(claim("c"), claim("waits")),
            volume("w"),
            delete(CLAIMS, "c"),
            delete(VOLUMES, "v"),
            delete(CLAIMS, "waits"),
            delete(VOLUMES, "w"),
        ),
    ),
    "provisioning": Story(
        about=("persistentvolume-binder", "persistentvolumeclaim-protection"),
        nodes=1,
        steps=(
            create(CLAIMS, "c", spec={"accessModes": ONCE, "resources": {"requests": {"storage": "1Gi"}}}),
            create(PODS, "p", spec=using("c")),
            delete(CLAIMS, "c"),
            delete(PODS, "p"),
        ),
    ),
    "attaching": Story(
        about=("persistentvolume-attach-detach", "persistentvolume-binder"),
        nodes=1,
        steps=(
            bound("a", **csi("h-a")),
            create(PODS, "p", metadata={"annotations": {"sandbox.kcm.dev/start-delay": "1500ms"}}, spec=using("a")),
            delete(PODS, "p"),
        ),
    ),
    "growing": Story(
        about=("persistentvolume-expander",),
        before=(FLEXIBLE,),
        steps=(
            together(
                bound("ebs", awsElasticBlockStore={"volumeID": "vol-1"}, nfs=None),
                bound("f", flexVolume={"driver": "example.com/flex"}),
            ),
            together(grow("ebs"), grow("f")),
        ),
    ),
    "ephemeral-volume": Story(
        about=("ephemeral-volume", "persistentvolume-binder"),
        nodes=1,
        steps=(
            together(
                volume("v", persistentVolumeReclaimPolicy="Retain"),
                create(
                    PODS, "p", spec=pod_spec(volumes=[{"name": "x", "ephemeral": {"volumeClaimTemplate": TEMPLATE}}])
                ),
            ),
            delete(PODS, "p"),
        ),
    ),
    "volume-attributes": Story(
        about=("volumeattributesclass-protection",),
        steps=(
            create(ATTRIBUTES, "fast", driverName=DRIVER, parameters={"iops": "1"}),
            claim("c", volumeAttributesClassName="fast", volumeName="none"),
            delete(ATTRIBUTES, "fast"),
            delete(CLAIMS, "c"),
        ),
    ),
}
