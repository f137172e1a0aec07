"""Extended resources that a DeviceClass provides, and the claim for them.

A pod that requests ``example.com/gpu: 1`` gets a device of the class with this ``extendedResourceName``, or of the
class NAME for ``deviceclass.resource.kubernetes.io/NAME``, on nodes without the resource. When the pod is bound, one
claim is created for all of them.

upstream: pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go,
staging/src/k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from kcm_cli.machinery import names
from kcm_cli.machinery.codec import Doc, encode
from kcm_cli.planning.quota.devices import IMPLICIT
from kcm_cli.planning.resource_claims import EXTENDED
from kcm_cli.sandbox.requests import requests_of
from kcm_cli.sandbox.scheduler.devices.views import CLAIMS, Claim, DeviceClass
from kcm_cli.sandbox.views import SimulatedPod

UNNAMED = "<extended-resources>"
"""In place of the name of a claim that is not written yet."""


class ExtendedClaim(msgspec.Struct, frozen=True):
    """A claim that is not written yet, and the ``requestMappings`` for the pod's status."""

    claim: Claim
    mappings: tuple[Doc, ...]


class _Asking(msgspec.Struct, frozen=True):
    """A container that requests devices. ``request``: the name of its own request."""

    place: int
    name: str
    count: int
    request: str


def offers(classes: Iterable[DeviceClass]) -> dict[str, str]:
    """The names of classes by the extended resource that they provide; of several the newest, or the first by name."""
    found: dict[str, str] = {}
    by_age = sorted(sorted(classes, key=lambda one: one.name, reverse=True), key=_created)
    for each in by_age:
        explicit = each.spec.extended_resource_name
        if explicit and not names.is_native_resource(explicit):
            found[explicit] = each.name
        found[IMPLICIT + each.name] = each.name
    return found


def extended_claim(pod: SimulatedPod, classes: Mapping[str, str]) -> ExtendedClaim | None:
    """The claim for these extended resources (with their classes) of a pod; None if no container requests them."""
    requests: list[Doc] = []
    mappings: list[Doc] = []
    for resource in sorted(classes):
        counts, given = _of_resource(pod, resource)
        for request, count in counts.items():
            exactly = {"deviceClassName": classes[resource], "allocationMode": "ExactCount", "count": count}
            requests.append({"name": request, "exactly": exactly})
        for container, request in given:
            mappings.append({"containerName": container, "resourceName": resource, "requestName": request})
    if not requests:
        return None
    requests.sort(key=lambda one: str(one["name"]))
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": True}
    metadata: Doc = {
        "name": UNNAMED,
        "namespace": pod.namespace,
        "uid": f"{UNNAMED}/{pod.uid}",
        "generateName": f"{pod.name}-extended-resources-",
        "annotations": {EXTENDED: "true"},
        "ownerReferences": [owner],
    }
    doc: Doc = {"metadata": metadata, "spec": {"devices": {"requests": requests}}}
    return ExtendedClaim(CLAIMS.decode(encode(doc)), tuple(mappings))


def _of_resource(pod: SimulatedPod, resource: str) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """(number of devices by request, pairs of container and request).

    Containers that run all the time have their own devices. An init container that ends uses those of containers that
    start after it. One request covers what init containers need beyond that, for the maximum of them.
    """
    lasting = list(_asking(pod, resource, ends=False))
    counts = {one.request: one.count for one in lasting}
    given = [(one.name, one.request) for one in lasting]
    ending: list[tuple[_Asking, list[_Asking], int]] = []
    most: _Asking | None = None
    most_missing = 0
    for one in _asking(pod, resource, ends=True):
        taken, missing = _lent(one, lasting)
        ending.append((one, taken, missing))
        if missing > most_missing:
            most, most_missing = one, missing
    for one, taken, missing in ending:
        given += [(one.name, other.request) for other in taken]
        if missing and most is not None:
            given.append((one.name, most.request))
    if most is not None:
        counts[most.request] = most_missing
    return counts, given


def _lent(one: _Asking, lasting: Iterable[_Asking]) -> tuple[list[_Asking], int]:
    """(the containers whose devices an init container uses, number of devices that are missing)."""
    taken: list[_Asking] = []
    missing = one.count
    for other in lasting:
        if missing > 0 and other.place > one.place:
            taken.append(other)
            missing -= other.count
    return taken, max(missing, 0)


def _asking(pod: SimulatedPod, resource: str, *, ends: bool) -> Iterator[_Asking]:
    """The containers that request a resource: init containers that end (``ends``), or all others."""
    first = len(pod.spec.init_containers)
    for place, container in enumerate((*pod.spec.init_containers, *pod.spec.containers)):
        asked = requests_of(container)
        count = asked.get(resource, 0)
        if count > 0 and ends == (place < first and container.restart_policy != "Always"):
            number = sorted(asked).index(resource)
            yield _Asking(place, container.name, count, f"container-{place}-request-{number}")


def _created(one: DeviceClass) -> str:
    return one.metadata.creation_timestamp or ""
