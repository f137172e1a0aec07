"""What the server does with each kind around a write (see ``base.Strategy``)."""

from collections.abc import Mapping

from kcm_cli.sandbox.apiserver.strategy import core, pod, service, workloads
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.types import ResourceInfo

__all__ = ["Strategy", "for_resource"]

_STRATEGIES: Mapping[tuple[str, str, str], Strategy] = {
    ("", "configmaps", ""): core.CONFIG_MAP,
    ("", "namespaces", ""): core.NAMESPACE,
    ("", "namespaces", "finalize"): core.NAMESPACE_FINALIZE,
    ("", "pods", ""): pod.POD,
    ("", "podtemplates", ""): workloads.POD_TEMPLATE,
    ("", "replicationcontrollers", ""): workloads.REPLICATION_CONTROLLER,
    ("", "secrets", ""): core.SECRET,
    ("", "serviceaccounts", ""): core.SERVICE_ACCOUNT,
    ("", "services", ""): service.SERVICE,
    ("apps", "daemonsets", ""): workloads.DAEMON_SET,
    ("apps", "deployments", ""): workloads.DEPLOYMENT,
    ("apps", "replicasets", ""): workloads.REPLICA_SET,
    ("apps", "statefulsets", ""): workloads.STATEFUL_SET,
    ("batch", "cronjobs", ""): workloads.CRON_JOB,
    ("batch", "jobs", ""): workloads.JOB,
}
_PLAIN = {True: Strategy(namespaced=True), False: Strategy(namespaced=False)}


def for_resource(resource: ResourceInfo, subresource: str = "") -> Strategy:
    """The strategy of a kind, or of a subresource with rules of its own (``finalize``, ``approval``,
    ``ephemeralcontainers``, ``resize``: use their ``prepare_update`` and ``validate_update``).

    A kind that has no rules gets a strategy that does nothing.
    """
    found = _STRATEGIES.get((resource.gvr.group, resource.gvr.plural, subresource))
    return found if found is not None and not resource.custom else _PLAIN[resource.namespaced]
