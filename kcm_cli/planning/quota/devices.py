"""Claims of devices against quotas of extended resources.

A claimed device is charged to its class, and to the extended resources by which pods can request devices of that class
(gate DRAExtendedResource): ``requests.deviceclass.resource.kubernetes.io/CLASS``, and
``requests.NAME`` for the name that the class gives. The scheduler creates a claim for a pod that requests extended
resources. The claim is not charged for what the pod is charged for.

upstream: pkg/quota/v1/evaluator/core/resource_claims.go,
staging/src/k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache
"""

from collections.abc import Iterable, Mapping

import msgspec

from kcm_cli.api.core import PODS, Pod
from kcm_cli.api.devices import DeviceClass
from kcm_cli.machinery import names as naming
from kcm_cli.machinery.meta import Object, OwnerReference, controller_of
from kcm_cli.planning.pod_resources import Amounts
from kcm_cli.planning.resource_claims import EXTENDED

REQUESTS = "requests."
IMPLICIT = "deviceclass.resource.kubernetes.io/"
DEVICES = ".deviceclass.resource.k8s.io/devices"
CLAIM_KIND = ("resource.k8s.io", "resourceclaims")
BY_POD = "extended claims by pod"
"""The name of the index of claims by the uid of the pod that the scheduler made them for."""


class DeviceClasses(msgspec.Struct, frozen=True):
    """``extended``: the extendedResourceName of each class. ``known``: all extended resources for devices, including
    the implicit one of each class."""

    extended: Mapping[str, str] = msgspec.field(default_factory=dict)
    known: frozenset[str] = frozenset()


def device_classes(classes: Iterable[DeviceClass]) -> DeviceClasses:
    """The extended resources of these classes."""
    extended: dict[str, str] = {}
    known: set[str] = set()
    for each in classes:
        known.add(IMPLICIT + each.name)
        if each.spec.extended_resource_name is not None:
            extended[each.name] = each.spec.extended_resource_name
            known.add(each.spec.extended_resource_name)
    return DeviceClasses(extended, frozenset(known - {""}))


def is_extended(name: str) -> bool:
    """Whether a quota's resource name is an extended resource, which may be backed by devices."""
    if not name.startswith(REQUESTS):
        return False
    return not naming.is_native_resource(name) or name.startswith(REQUESTS + IMPLICIT)


def covers(name: str, classes: DeviceClasses) -> bool:
    """Whether a quota's resource name is an extended resource that claims are charged to."""
    return is_extended(name) and name.removeprefix(REQUESTS) in classes.known


def with_extended(usage: Amounts, classes: DeviceClasses, pod_usage: Amounts) -> Amounts:
    """The usage of a claim including the extended resources of its classes, less the charge of its pod."""
    found: Amounts = {}
    for name, amount in usage.items():
        class_name = name.removesuffix(DEVICES)
        if class_name == name or not class_name:
            continue
        for resource in (IMPLICIT + class_name, classes.extended.get(class_name)):
            if resource and (REQUESTS + resource not in found or found[REQUESTS + resource] < amount):
                found[REQUESTS + resource] = amount
    for name, charged in pod_usage.items():
        if name in found:
            found[name] -= charged
    return {**usage, **{name: amount for name, amount in found.items() if amount.sign > 0}}


def pod_of(claim: Object) -> OwnerReference | None:
    """The pod for whose extended resources the scheduler created a claim; None for other claims."""
    if claim.annotations.get(EXTENDED) != "true":
        return None
    owner = controller_of(claim)
    return owner if owner is not None and owner.kind == PODS.kind and owner.api_version == "v1" else None


def by_pod(claim: Object) -> tuple[str, ...]:
    """The index function: the uid of the pod for which the scheduler created a claim."""
    owner = pod_of(claim)
    return (owner.uid,) if owner is not None else ()


def pays_for(pod: Pod | None, claim: Object, siblings: Iterable[Object]) -> bool:
    """Whether the charge of a pod reduces that of a claim created for it. It does so for one claim only: the one in the
    pod's status or, without one, the oldest. ``siblings``: all claims created for the pod."""
    owner = pod_of(claim)
    if pod is None or owner is None or owner.uid != pod.uid:
        return False
    named = pod.status.extended_resource_claim_status
    if named is not None:
        return named.resource_claim_name == claim.name
    return all(_age(claim) <= _age(other) for other in siblings if other.namespace == claim.namespace)


def _age(claim: Object) -> tuple[str, str]:
    return claim.metadata.creation_timestamp or "", claim.name
