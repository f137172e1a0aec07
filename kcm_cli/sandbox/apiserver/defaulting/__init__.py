"""The values that the API server fills in where a client leaves fields out.

``apply`` changes a document in place. It is idempotent, and quantities in it are canonical afterwards.
"""

from collections.abc import Callable, Mapping

from kcm_cli.sandbox.apiserver.defaulting import core, pod, storage, workloads
from kcm_cli.sandbox.apiserver.types import ResourceInfo, Tree

__all__ = ["apply"]

_DEFAULTERS: Mapping[tuple[str, str], Callable[[Tree], None]] = {
    ("", "namespaces"): core.namespace,
    ("", "persistentvolumeclaims"): storage.claim,
    ("", "persistentvolumes"): storage.volume,
    ("", "pods"): pod.pod,
    ("", "podtemplates"): workloads.pod_template,
    ("", "replicationcontrollers"): workloads.replication_controller,
    ("", "secrets"): core.secret,
    ("", "services"): core.service,
    ("apps", "daemonsets"): workloads.daemon_set,
    ("apps", "deployments"): workloads.deployment,
    ("apps", "replicasets"): workloads.replica_set,
    ("apps", "statefulsets"): workloads.stateful_set,
    ("batch", "cronjobs"): workloads.cron_job,
    ("batch", "jobs"): workloads.job,
}


def apply(resource: ResourceInfo, doc: Tree) -> None:
    """Fill in the defaults of a built-in kind."""
    defaulter = _DEFAULTERS.get((resource.gvr.group, resource.gvr.plural))
    if defaulter is not None and not resource.custom:
        defaulter(doc)
