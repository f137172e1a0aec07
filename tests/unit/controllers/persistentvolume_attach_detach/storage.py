"""Claims with volumes of the sandbox's driver, bound by hand."""

from kcm_cli.planning.volumes.attachable import attachment_name
from kcm_cli.sandbox.storage.plan import DRIVER
from tests.kit.world import NODES, World, resource

CLAIMS = resource("persistentvolumeclaims")
VOLUMES = resource("persistentvolumes", namespaced=False)
ATTACHMENTS = resource("volumeattachments", "storage.k8s.io", namespaced=False)
DRIVERS = resource("csidrivers", "storage.k8s.io", namespaced=False)
ONCE = ["ReadWriteOnce"]


async def bound(
    world: World, name: str, modes: list[str] | None = None, source: dict | None = None, namespace: str = "default"
) -> None:
    """A claim that is bound to the volume ``v-NAME``."""
    size = {"storage": "1Gi"}
    spec = {"accessModes": modes or ONCE, "storageClassName": "none"}
    claim = {"metadata": {"name": name}, "spec": {**spec, "resources": {"requests": size}, "volumeName": f"v-{name}"}}
    await world.create(CLAIMS, claim, namespace)
    uid = (await world.get(CLAIMS, name, namespace))["metadata"]["uid"]
    ref = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": name, "uid": uid}
    source = source or {"csi": {"driver": DRIVER, "volumeHandle": f"h-{name}"}}
    volume = {"metadata": {"name": f"v-{name}"}, "spec": {**spec, "capacity": size, "claimRef": ref, **source}}
    await world.create(VOLUMES, volume)
    status = {"phase": "Bound", "capacity": size, "accessModes": modes or ONCE}
    await world.client.patch(CLAIMS, namespace, name, {"status": status}, subresource="status")


def using(claim: str, node: str = "node-1", **spec) -> dict:
    """The spec of a pod with a claim on a node."""
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
    return {"volumes": [volume], "nodeName": node, "terminationGracePeriodSeconds": 1, **spec}


def unique(claim: str) -> str:
    return f"kubernetes.io/csi/{DRIVER}^h-{claim}"


def attachment(claim: str, node: str = "node-1") -> str:
    return attachment_name(DRIVER, f"h-{claim}", node)


async def reported(world: World, node: str = "node-1") -> list[str]:
    """The volumesAttached of a node."""
    return [volume["name"] for volume in (await world.get(NODES, node))["status"].get("volumesAttached", [])]


async def in_use(world: World, node: str = "node-1") -> list[str]:
    return (await world.get(NODES, node))["status"].get("volumesInUse", [])
