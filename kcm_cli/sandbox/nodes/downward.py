"""The downward API: fields of a pod, and resources of its containers.

upstream: pkg/fieldpath/fieldpath.go, pkg/api/v1/resource/helpers.go, pkg/kubelet/kubelet_pods.go
"""

import re
from collections.abc import Mapping

from kcm_cli.machinery import quantity
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.views import ResourceFieldRef, SimulatedContainer, SimulatedPod

_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")
_WITHOUT_LIMIT = frozenset(("cpu", "memory", "ephemeral-storage"))
"""Resources whose default limit is the node's allocatable."""
_OF_POD = frozenset(("cpu", "memory"))
"""Resources for which a pod-level limit precedes the node's allocatable."""


def field_of(pod: SimulatedPod, path: str) -> str | None:
    """Return the value of a field (``metadata.labels['app']``, ``status.podIP``), or None if it is unknown."""
    if subscript := _SUBSCRIPT.fullmatch(path):
        return (pod.labels if subscript[1] == "labels" else pod.annotations).get(subscript[2], "")
    status = pod.status
    known = {
        "metadata.name": pod.name,
        "metadata.namespace": pod.namespace,
        "metadata.uid": pod.uid,
        "spec.nodeName": pod.spec.node_name,
        "spec.serviceAccountName": pod.spec.service_account_name,
        "status.hostIP": status.host_ip or None,
        "status.hostIPs": status.host_ip or None,
        "status.podIP": status.pod_ip or None,
        "status.podIPs": ",".join(each.ip for each in status.pod_ips) or None,
    }
    if path in ("metadata.labels", "metadata.annotations"):
        return _lines(pod.labels if path == "metadata.labels" else pod.annotations)
    return known.get(path)


def _lines(values: Mapping[str, str]) -> str:
    return "\n".join(f"{name}={quote(values[name])}" for name in sorted(values))


def resource_of(
    pod: SimulatedPod, container: SimulatedContainer, ref: ResourceFieldRef, allocatable: Mapping[str, str]
) -> str | None:
    """Return a container's request or limit in units of the divisor, rounded up, or None if it is unknown.

    container: the one used if ``ref`` names none.
    """
    if ref.container_name:
        known = (*pod.spec.containers, *pod.spec.init_containers)
        found = next((each for each in known if each.name == ref.container_name), None)
        if found is None:
            return None
        container = found
    part, _, name = ref.resource.partition(".")
    resources = container.resources
    asked = {} if resources is None else (resources.limits if part == "limits" else resources.requests) or {}
    try:
        amount = quantity.parse(asked.get(name) or "0")
        if not amount and part == "limits" and name in _OF_POD and pod.spec.resources is not None:
            amount = quantity.parse((pod.spec.resources.limits or {}).get(name) or "0")
        if not amount and part == "limits" and name in _WITHOUT_LIMIT:
            if name not in allocatable:
                return None
            amount = quantity.parse(allocatable[name])
        divisor = quantity.parse(ref.divisor or "0")
    except FormatError:
        return None
    divisor = divisor or quantity.parse("1")
    whole, unit = (each.milli_value() if name == "cpu" else each.value() for each in (amount, divisor))
    return str(-(-whole // unit))
