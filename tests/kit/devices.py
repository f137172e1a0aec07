"""ResourceClaims for tests: requests of pods, and the writes of a scheduler and a driver."""

from typing import Any

from kcm_cli.api.devices import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from tests.kit.world import World, resource

DRIVER = "gpu.example.com"
CLASS = "gpu"
FINALIZER = "resource.kubernetes.io/delete-protection"
SLICES = resource("resourceslices", "resource.k8s.io", namespaced=False)
CLASSES = resource("deviceclasses", "resource.k8s.io", namespaced=False)
NOWHERE = {"nodeSelector": {"no": "node"}}
"""Of a pod that is to stay unbound."""


def claim_spec(**request: Any) -> dict[str, Any]:
    return {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": CLASS} | request}]}}


def template(name: str = "t", *, meta: dict[str, Any] | None = None, **request: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"spec": claim_spec(**request)}
    if meta:
        spec["metadata"] = meta
    return {"metadata": {"name": name}, "spec": spec}


def from_template(name: str = "t", entry: str = "e") -> dict[str, Any]:
    return {"resourceClaims": [{"name": entry, "resourceClaimTemplateName": name}]}


def by_name(name: str, entry: str = "e") -> dict[str, Any]:
    return {"resourceClaims": [{"name": entry, "resourceClaimName": name}]}


async def make_template(world: World, *args: Any, **kwargs: Any) -> None:
    await world.create(RESOURCE_CLAIM_TEMPLATES, template(*args, **kwargs))


async def make_claim(world: World, name: str = "c", **request: Any) -> None:
    await world.create(RESOURCE_CLAIMS, {"metadata": {"name": name}, "spec": claim_spec(**request)})


async def claims(world: World) -> list[dict[str, Any]]:
    return await world.items(RESOURCE_CLAIMS)


async def allocate(world: World, name: str, *pods: str, device: str = "d0", **result: Any) -> None:
    """As the scheduler does: the finalizer, the devices, and the pods for which they are reserved."""
    await world.patch(RESOURCE_CLAIMS, name, {"metadata": {"finalizers": [FINALIZER]}})
    found = {"request": "r", "driver": DRIVER, "pool": "p", "device": device} | result
    uids = {pod: (await world.get(resource("pods"), pod))["metadata"]["uid"] for pod in pods}
    users = [{"resource": "pods", "name": pod, "uid": uid} for pod, uid in uids.items()]
    status: dict[str, Any] = {"allocation": {"devices": {"results": [found]}}}
    if users:
        status["reservedFor"] = users
    doc = await world.get(RESOURCE_CLAIMS, name)
    await world.client.update(RESOURCE_CLAIMS, "default", name, doc | {"status": status}, subresource="status")
