"""What the server does with each kind around a write (see ``base.Strategy``)."""

from collections.abc import Mapping

from kcm_cli.sandbox.apiserver.strategy import (
    certificates,
    core,
    devices,
    networking,
    pod,
    policies,
    service,
    storage,
    workloads,
)
from kcm_cli.sandbox.apiserver.strategy.base import Context, Strategy
from kcm_cli.sandbox.apiserver.types import ResourceInfo

__all__ = ["Context", "Strategy", "for_resource"]

_ADMISSION = "admissionregistration.k8s.io"
_CERTIFICATES = "certificates.k8s.io"
_FLOWS = "flowcontrol.apiserver.k8s.io"
_NETWORKING = "networking.k8s.io"
_RBAC = "rbac.authorization.k8s.io"
_DEVICES = "resource.k8s.io"
_STORAGE = "storage.k8s.io"

_STRATEGIES: Mapping[tuple[str, str, str], Strategy] = {
    ("", "configmaps", ""): core.CONFIG_MAP,
    ("", "endpoints", ""): core.ENDPOINTS,
    ("", "events", ""): core.EVENT,
    ("", "limitranges", ""): core.LIMIT_RANGE,
    ("", "namespaces", ""): core.NAMESPACE,
    ("", "namespaces", "finalize"): core.NAMESPACE_FINALIZE,
    ("", "nodes", ""): core.NODE,
    ("", "persistentvolumeclaims", ""): storage.PERSISTENT_VOLUME_CLAIM,
    ("", "persistentvolumes", ""): storage.PERSISTENT_VOLUME,
    ("", "pods", ""): pod.POD,
    ("", "pods", "ephemeralcontainers"): pod.POD_EPHEMERAL_CONTAINERS,
    ("", "pods", "resize"): pod.POD_RESIZE,
    ("", "podtemplates", ""): workloads.POD_TEMPLATE,
    ("", "replicationcontrollers", ""): workloads.REPLICATION_CONTROLLER,
    ("", "resourcequotas", ""): core.RESOURCE_QUOTA,
    ("", "secrets", ""): core.SECRET,
    ("", "serviceaccounts", ""): core.SERVICE_ACCOUNT,
    ("", "services", ""): service.SERVICE,
    (_ADMISSION, "mutatingadmissionpolicies", ""): policies.MUTATING_ADMISSION_POLICY,
    (_ADMISSION, "mutatingadmissionpolicybindings", ""): policies.MUTATING_ADMISSION_POLICY_BINDING,
    (_ADMISSION, "mutatingwebhookconfigurations", ""): policies.WEBHOOKS,
    (_ADMISSION, "validatingadmissionpolicies", ""): policies.VALIDATING_ADMISSION_POLICY,
    (_ADMISSION, "validatingadmissionpolicybindings", ""): policies.VALIDATING_ADMISSION_POLICY_BINDING,
    (_ADMISSION, "validatingwebhookconfigurations", ""): policies.WEBHOOKS,
    ("apiregistration.k8s.io", "apiservices", ""): certificates.API_SERVICE,
    ("apps", "controllerrevisions", ""): policies.CONTROLLER_REVISION,
    ("apps", "daemonsets", ""): workloads.DAEMON_SET,
    ("apps", "deployments", ""): workloads.DEPLOYMENT,
    ("apps", "replicasets", ""): workloads.REPLICA_SET,
    ("apps", "statefulsets", ""): workloads.STATEFUL_SET,
    ("autoscaling", "horizontalpodautoscalers", ""): policies.HORIZONTAL_POD_AUTOSCALER,
    ("batch", "cronjobs", ""): workloads.CRON_JOB,
    ("batch", "jobs", ""): workloads.JOB,
    (_CERTIFICATES, "certificatesigningrequests", ""): certificates.SIGNING_REQUEST,
    (_CERTIFICATES, "certificatesigningrequests", "approval"): certificates.SIGNING_REQUEST_APPROVAL,
    ("coordination.k8s.io", "leases", ""): policies.LEASE,
    ("discovery.k8s.io", "endpointslices", ""): networking.ENDPOINT_SLICE,
    ("events.k8s.io", "events", ""): core.GROUP_EVENT,
    (_FLOWS, "flowschemas", ""): policies.FLOW_SCHEMA,
    (_FLOWS, "prioritylevelconfigurations", ""): policies.PRIORITY_LEVEL,
    (_NETWORKING, "ingressclasses", ""): networking.INGRESS_CLASS,
    (_NETWORKING, "ingresses", ""): networking.INGRESS,
    (_NETWORKING, "ipaddresses", ""): networking.IP_ADDRESS,
    (_NETWORKING, "networkpolicies", ""): networking.NETWORK_POLICY,
    (_NETWORKING, "servicecidrs", ""): networking.SERVICE_CIDR,
    ("node.k8s.io", "runtimeclasses", ""): policies.RUNTIME_CLASS,
    ("policy", "poddisruptionbudgets", ""): policies.POD_DISRUPTION_BUDGET,
    (_RBAC, "clusterrolebindings", ""): policies.CLUSTER_ROLE_BINDING,
    (_RBAC, "clusterroles", ""): policies.CLUSTER_ROLE,
    (_RBAC, "rolebindings", ""): policies.ROLE_BINDING,
    (_RBAC, "roles", ""): policies.ROLE,
    (_DEVICES, "deviceclasses", ""): devices.DEVICE_CLASS,
    (_DEVICES, "resourceclaims", ""): devices.RESOURCE_CLAIM,
    (_DEVICES, "resourceclaimtemplates", ""): devices.RESOURCE_CLAIM_TEMPLATE,
    (_DEVICES, "resourceslices", ""): devices.RESOURCE_SLICE,
    ("scheduling.k8s.io", "priorityclasses", ""): policies.PRIORITY_CLASS,
    (_STORAGE, "csidrivers", ""): storage.CSI_DRIVER,
    (_STORAGE, "csinodes", ""): storage.CSI_NODE,
    (_STORAGE, "csistoragecapacities", ""): storage.CSI_STORAGE_CAPACITY,
    (_STORAGE, "storageclasses", ""): storage.STORAGE_CLASS,
    (_STORAGE, "volumeattachments", ""): storage.VOLUME_ATTACHMENT,
    (_STORAGE, "volumeattributesclasses", ""): storage.VOLUME_ATTRIBUTES_CLASS,
}
_PLAIN = {True: Strategy(namespaced=True), False: Strategy(namespaced=False)}


def for_resource(resource: ResourceInfo, subresource: str = "") -> Strategy:
    """The strategy of a kind, or of a subresource with rules of its own (``finalize``, ``approval``,
    ``ephemeralcontainers``, ``resize``: use their ``prepare_update`` and ``validate_update``).

    A kind that has no rules gets a strategy that does nothing.
    """
    found = _STRATEGIES.get((resource.gvr.group, resource.gvr.plural, subresource))
    return found if found is not None and not resource.custom else _PLAIN[resource.namespaced]
