"""The values that the API server fills in where a client leaves fields out.

``apply`` changes a document in place. It is idempotent, and quantities in it are canonical afterwards.
"""

from collections.abc import Callable, Mapping

from kcm_cli.sandbox.apiserver.defaulting import cluster, core, pod, policies, storage, workloads
from kcm_cli.sandbox.apiserver.types import ResourceInfo, Tree

__all__ = ["apply"]

_DEFAULTERS: Mapping[tuple[str, str], Callable[[Tree], None]] = {
    ("", "endpoints"): cluster.endpoints,
    ("", "limitranges"): cluster.limit_range,
    ("", "namespaces"): core.namespace,
    ("", "nodes"): cluster.node,
    ("", "persistentvolumeclaims"): storage.claim,
    ("", "persistentvolumes"): storage.volume,
    ("", "pods"): pod.pod,
    ("", "podtemplates"): workloads.pod_template,
    ("", "replicationcontrollers"): workloads.replication_controller,
    ("", "resourcequotas"): cluster.resource_quota,
    ("", "secrets"): core.secret,
    ("", "services"): core.service,
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"): policies.admission_policy,
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"): policies.admission_policy_binding,
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): policies.webhooks,
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"): policies.admission_policy,
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"): policies.admission_policy_binding,
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): policies.webhooks,
    ("apiregistration.k8s.io", "apiservices"): cluster.api_service,
    ("apps", "daemonsets"): workloads.daemon_set,
    ("apps", "deployments"): workloads.deployment,
    ("apps", "replicasets"): workloads.replica_set,
    ("apps", "statefulsets"): workloads.stateful_set,
    ("autoscaling", "horizontalpodautoscalers"): policies.autoscaler,
    ("batch", "cronjobs"): workloads.cron_job,
    ("batch", "jobs"): workloads.job,
    ("discovery.k8s.io", "endpointslices"): cluster.endpoint_slice,
    ("flowcontrol.apiserver.k8s.io", "flowschemas"): policies.flow_schema,
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"): policies.priority_level,
    ("networking.k8s.io", "ingressclasses"): cluster.ingress_class,
    ("networking.k8s.io", "networkpolicies"): cluster.network_policy,
    ("rbac.authorization.k8s.io", "clusterrolebindings"): cluster.role_binding,
    ("rbac.authorization.k8s.io", "rolebindings"): cluster.role_binding,
    ("resource.k8s.io", "resourceclaims"): policies.resource_claim,
    ("resource.k8s.io", "resourceclaimtemplates"): policies.resource_claim_template,
    ("scheduling.k8s.io", "priorityclasses"): cluster.priority_class,
    ("storage.k8s.io", "csidrivers"): cluster.csi_driver,
    ("storage.k8s.io", "storageclasses"): cluster.storage_class,
    ("storage.k8s.io", "volumeattachments"): cluster.volume_attachment,
}


def apply(resource: ResourceInfo, doc: Tree) -> None:
    """Fill in the defaults of a built-in kind."""
    defaulter = _DEFAULTERS.get((resource.gvr.group, resource.gvr.plural))
    if defaulter is not None and not resource.custom:
        defaulter(doc)
