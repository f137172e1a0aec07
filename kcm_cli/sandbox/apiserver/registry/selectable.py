"""Which fields of each kind a field selector may name, and their values.

upstream: pkg/apis/*/v1/conversion.go (labels), pkg/registry/*/strategy.go#SelectableFields (values), v1.36
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec

from kcm_cli.api.resource import GVR
from kcm_cli.machinery import codec
from kcm_cli.machinery.fields import FieldRequirement, FieldSelector
from kcm_cli.sandbox.apiserver.store import Stored
from kcm_cli.sandbox.apiserver.types import ApiError, ResourceInfo

Values = Callable[[Stored], dict[str, str]]

_NAMES = ("metadata.name", "metadata.namespace")


@dataclass(frozen=True, slots=True)
class Selectable:
    """Fields beyond name and namespace. ``fields``: label -> where its value is; ``refusal``: the text for others."""

    fields: Mapping[str, str]
    refusal: str = "field label not supported: {label}"
    absent: Mapping[str, str] = field(default_factory=dict)
    values: Values | None = None


class _PodSpec(msgspec.Struct, rename="camel", gc=False, frozen=True):
    node_name: str = ""
    restart_policy: str = ""
    scheduler_name: str = ""
    service_account_name: str = ""
    host_network: bool = False


class _PodIP(msgspec.Struct, gc=False):
    ip: str = ""


class _PodStatus(msgspec.Struct, gc=False, frozen=True):
    phase: str = ""
    podIPs: tuple[_PodIP, ...] | None = None
    nominatedNodeName: str = ""


class _Pod(msgspec.Struct, gc=False):
    spec: _PodSpec = _PodSpec()
    status: _PodStatus = _PodStatus()


def _pod_values(stored: Stored) -> dict[str, str]:
    pod = codec.decode(stored.data, _Pod)
    ips = pod.status.podIPs
    return {
        "metadata.name": stored.name,
        "metadata.namespace": stored.namespace,
        "spec.nodeName": pod.spec.node_name,
        "spec.restartPolicy": pod.spec.restart_policy,
        "spec.schedulerName": pod.spec.scheduler_name,
        "spec.serviceAccountName": pod.spec.service_account_name,
        "spec.hostNetwork": "true" if pod.spec.host_network else "false",
        "status.phase": pod.status.phase,
        "status.podIP": ips[0].ip if ips else "",
        "status.nominatedNodeName": pod.status.nominatedNodeName,
    }


def _event_values(stored: Stored) -> dict[str, str]:
    doc = stored.doc
    values = {label: _text(doc, path) for label, path in _EVENT_FIELDS.items()}
    values["source"] = _text(doc, "source.component") or values["reportingComponent"]
    values["metadata.name"], values["metadata.namespace"] = stored.name, stored.namespace
    return values


_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_EVENT_FIELDS = {f"involvedObject.{name}": f"involvedObject.{name}" for name in _INVOLVED} | {
    "reason": "reason",
    "reportingComponent": "reportingComponent",
    "source": "",
    "type": "type",
}
_EVENTS_V1_LABELS = {f"regarding.{name}": f"involvedObject.{name}" for name in _INVOLVED} | {
    "reason": "reason",
    "reportingController": "reportingComponent",
    "type": "type",
}
_POD_FIELDS = (
    *("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName"),
    *("spec.hostNetwork", "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName"),
)

_SELECTABLE: dict[GVR, Selectable] = {
    GVR("", "v1", "pods"): Selectable(dict.fromkeys(_POD_FIELDS, ""), values=_pod_values),
    GVR("", "v1", "nodes"): Selectable(
        {"spec.unschedulable": "spec.unschedulable"}, absent={"spec.unschedulable": "false"}
    ),
    GVR("", "v1", "replicationcontrollers"): Selectable(
        {"status.replicas": "status.replicas"}, absent={"status.replicas": "0"}
    ),
    GVR("", "v1", "events"): Selectable(_EVENT_FIELDS, values=_event_values),
    GVR("events.k8s.io", "v1", "events"): Selectable(_EVENTS_V1_LABELS, values=_event_values),
    GVR("", "v1", "namespaces"): Selectable({"status.phase": "status.phase"}),
    GVR("", "v1", "secrets"): Selectable({"type": "type"}),
    GVR("", "v1", "services"): Selectable({"spec.clusterIP": "spec.clusterIP", "spec.type": "spec.type"}),
    GVR("batch", "v1", "jobs"): Selectable(
        {"status.successful": "status.succeeded"},
        refusal='field label "{label}" not supported for Job',
        absent={"status.successful": "0"},
    ),
    GVR("certificates.k8s.io", "v1", "certificatesigningrequests"): Selectable({"spec.signerName": "spec.signerName"}),
    GVR("resource.k8s.io", "v1", "resourceslices"): Selectable(
        {"spec.nodeName": "spec.nodeName", "spec.driver": "spec.driver"},
        refusal="field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {label}",
    ),
}
_CLUSTER_ONLY_NAMES = frozenset(
    [
        GVR("", "v1", "nodes"),
        GVR("", "v1", "namespaces"),
        GVR("certificates.k8s.io", "v1", "certificatesigningrequests"),
        GVR("resource.k8s.io", "v1", "resourceslices"),
    ]
)
"""Kinds whose own list of labels leaves metadata.namespace out."""

_PLAIN = Selectable({}, refusal='"{label}" is not a known field selector: only "metadata.name", "metadata.namespace"')


def resolve(
    info: ResourceInfo, selector: FieldSelector, custom: Mapping[str, str] | None = None
) -> tuple[FieldSelector, Values]:
    """The selector in the labels of the values, and how to get the values. Raises ApiError 400.

    ``custom``: the selectable fields of a custom resource, label -> path.
    """
    rules = _SELECTABLE.get(info.gvr, _PLAIN)
    if custom is not None:
        rules = Selectable(custom, refusal="field label not supported: {label}")
    names = _NAMES[:1] if info.gvr in _CLUSTER_ONLY_NAMES else _NAMES
    terms = []
    for term in selector.requirements:
        label = term.field
        if label == "spec.host" and info.gvr.plural == "pods":
            label = "spec.nodeName"
        if label not in names and label not in rules.fields:
            raise ApiError(400, "BadRequest", rules.refusal.format(label=term.field))
        mapped = rules.fields[label] if rules.fields is _EVENTS_V1_LABELS and label not in names else label
        terms.append(FieldRequirement(mapped, term.value, term.equal))
    return FieldSelector(tuple(terms)), rules.values or _reader(rules)


def _reader(rules: Selectable) -> Values:
    def values(stored: Stored) -> dict[str, str]:
        found = {"metadata.name": stored.name, "metadata.namespace": stored.namespace}
        if rules.fields:
            doc = stored.doc
            for label, path in rules.fields.items():
                found[label] = _text(doc, path) or rules.absent.get(label, "")
        return found

    return values


def _text(value: object, path: str) -> str:
    for part in path.split(".") if path else ():
        if not isinstance(value, dict):
            return ""
        value = value.get(part)
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None or isinstance(value, dict | list) else str(value)
