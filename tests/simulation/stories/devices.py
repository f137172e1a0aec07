"""Devices, their claims, and groups of pods."""

from typing import Any

from kcm_cli.api.devices import DEVICE_TAINT_RULES, RESOURCE_POOL_STATUS_REQUESTS
from kcm_cli.api.scheduling import POD_GROUPS
from kcm_cli.controllers.podgroup_protection.controller import FINALIZER as GROUP_FINALIZER
from tests.kit.devices import DRIVER, FINALIZER, NOWHERE, by_name, claim_spec, from_template, template
from tests.kit.simulation import World
from tests.simulation.stories.kit import (
    NAMESPACE,
    PODS,
    Step,
    Story,
    create,
    create_doc,
    delete,
    kind,
    pod_spec,
    serving,
    together,
    typed,
    until,
    wide,
)

SLICES = wide("resource.k8s.io/v1/resourceslices")
CLAIMS, TEMPLATES = kind("resource.k8s.io/v1/resourceclaims"), kind("resource.k8s.io/v1/resourceclaimtemplates")
POOL = {"name": "p", "generation": 1, "resourceSliceCount": 1}


def published(*tainted: str) -> dict[str, Any]:
    taint = {"key": "broken", "effect": "NoExecute"}
    devices = [{"name": name} | ({"taints": [taint]} if name in tainted else {}) for name in ("d0", "d1")]
    return {"driver": DRIVER, "pool": POOL, "nodeName": "node-1", "devices": devices}


def breaks(*names: str) -> Step:
    async def step(world: World) -> None:
        doc = await world.client.get_doc(SLICES, "", "s")
        await world.client.update(SLICES, "", "s", doc | {"spec": published(*names)})

    return step


def uses(pod: str, device: str, **fields: Any) -> Step:
    """A pod with a claim of its name, which is allocated as a scheduler does it."""

    async def step(world: World) -> None:
        await create(CLAIMS, pod, spec=claim_spec())(world)
        await create(PODS, pod, spec=pod_spec(nodeName="node-1", **by_name(pod), **fields))(world)
        uid = (await world.client.get_doc(PODS, NAMESPACE, pod))["metadata"]["uid"]
        doc = await world.client.get_doc(CLAIMS, NAMESPACE, pod)
        doc["metadata"]["finalizers"] = [FINALIZER]
        await world.client.update(CLAIMS, NAMESPACE, pod, doc)
        doc = await world.client.get_doc(CLAIMS, NAMESPACE, pod)
        found = {"request": "r", "driver": DRIVER, "pool": "p", "device": device}
        users = [{"resource": "pods", "name": pod, "uid": uid}]
        doc["status"] = {"allocation": {"devices": {"results": [found]}}, "reservedFor": users}
        await world.client.update(CLAIMS, NAMESPACE, pod, doc, subresource="status")

    return step


RULE = {"deviceSelector": {"driver": DRIVER}, "taint": {"key": "k", "effect": "NoExecute"}}

STORIES = {
    "claims-of-devices": Story(
        about=("resourceclaim",),
        nodes=1,
        steps=(
            create(SLICES, "s", spec=published()),
            create_doc(TEMPLATES, template()),
            create(PODS, "waits", spec=pod_spec(**from_template(), **NOWHERE)),
            uses("p", "d0"),
            delete(PODS, "p"),
            delete(PODS, "waits"),
        ),
    ),
    "broken-device": Story(
        about=("device-taint-eviction", "resourceclaim"),
        nodes=1,
        steps=(
            create(SLICES, "s", spec=published()),
            together(uses("p", "d0"), uses("q", "d1")),
            breaks("d0"),
        ),
    ),
    "device-rule": Story(
        about=("device-taint-eviction",),
        nodes=1,
        flags=("--feature-gates=DRADeviceTaintRules=true",),
        before=(serving(DEVICE_TAINT_RULES, "DeviceTaintRule"),),
        steps=(
            create(SLICES, "s", spec=published()),
            uses("p", "d0"),
            typed(DEVICE_TAINT_RULES, "DeviceTaintRule", {"metadata": {"name": "r"}, "spec": RULE}),
        ),
    ),
    "device-pools": Story(
        about=("resourcepoolstatusrequest",),
        flags=("--feature-gates=DRAResourcePoolStatus=true",),
        before=(serving(RESOURCE_POOL_STATUS_REQUESTS, "ResourcePoolStatusRequest"),),
        steps=(
            create(SLICES, "s", spec=published()),
            typed(
                RESOURCE_POOL_STATUS_REQUESTS,
                "ResourcePoolStatusRequest",
                {"metadata": {"name": "r"}, "spec": {"driver": DRIVER}},
            ),
            until(6000),
        ),
    ),
    "pod-groups": Story(
        about=("podgroup-protection",),
        flags=("--feature-gates=GenericWorkload=true",),
        before=(serving(POD_GROUPS, "PodGroup"),),
        steps=(
            typed(POD_GROUPS, "PodGroup", {"metadata": {"name": "g", "finalizers": [GROUP_FINALIZER]}, "spec": {}}),
            delete(POD_GROUPS, "g"),
        ),
    ),
}
