"""Volumes, claims and classes in a sandbox, and the controller on them."""

from typing import Any

from kcm_cli.controllers.persistentvolume_binder.config import PersistentVolumeBinderConfig
from tests.kit.world import World, resource

NAME = "persistentvolume-binder-controller"
CONFIG = PersistentVolumeBinderConfig()
VOLUMES = resource("persistentvolumes", namespaced=False)
CLAIMS = resource("persistentvolumeclaims")
CLASSES = resource("storageclasses", "storage.k8s.io", namespaced=False)
PODS = resource("pods")
NFS = {"nfs": {"server": "h", "path": "/x"}}


async def make_volume(world: World, name: str, size: str = "1Gi", **spec: Any) -> None:
    metadata = {"name": name, **spec.pop("metadata", {})}
    source = {} if spec.keys() & {"hostPath", "csi", "awsElasticBlockStore"} else NFS
    body = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": "gold"}
    await world.create(VOLUMES, {"metadata": metadata, "spec": {**body, **source, **spec}})


async def make_claim(world: World, name: str, size: str = "1Gi", **spec: Any) -> None:
    metadata = {"name": name, **spec.pop("metadata", {})}
    body = {"resources": {"requests": {"storage": size}}, "accessModes": ["ReadWriteOnce"], "storageClassName": "gold"}
    await world.create(CLAIMS, {"metadata": metadata, "spec": {**body, **spec}})


async def make_class(world: World, name: str, provisioner: str = "example.com/x", **fields: Any) -> None:
    metadata = {"name": name, **fields.pop("metadata", {})}
    await world.create(CLASSES, {"metadata": metadata, "provisioner": provisioner, **fields})


async def phase(world: World, kind: Any, name: str) -> str:
    return str((await world.get(kind, name))["status"]["phase"])


async def remove(world: World, kind: Any, name: str) -> None:
    """Delete it, whatever holds it."""
    await world.patch(kind, name, {"metadata": {"finalizers": None}})
    await world.delete(kind, name)
