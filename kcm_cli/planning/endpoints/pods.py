"""Decides whether a pod is an endpoint, and which changes of a pod change its endpoints.

upstream: staging/src/k8s.io/endpointslice/util/controller_utils.go
"""

from collections.abc import Callable, Iterable

from kcm_cli.api.core import Pod, Service
from kcm_cli.planning.pods import is_ready, is_terminal


def should_be_in_endpoints(pod: Pod, *, terminating: bool) -> bool:
    """Whether a selected pod is an endpoint: not ended and with an address; one being deleted only if requested."""
    if is_terminal(pod) or not (pod.status.pod_ip or pod.status.pod_ips):
        return False
    return terminating or not pod.deleting


def published_hostname(pod: Pod, service: Service) -> str:
    """The pod's host name, if its subdomain is the Service's name."""
    return pod.spec.hostname if pod.spec.subdomain == service.name else ""


def endpoint_changed(old: Pod, new: Pod) -> bool:
    """Whether an update of a pod may change its endpoints. Any update of a pod that is being deleted counts."""
    return (
        old.deleting
        or new.deleting
        or is_ready(old) != is_ready(new)
        or is_terminal(old) != is_terminal(new)
        or old.status.pod_ips != new.status.pod_ips
        or old.status.pod_ip != new.status.pod_ip
    )


def affected(find: Callable[[Pod], Iterable[str]], old: Pod, new: Pod) -> set[str]:
    """The Services to sync after an update of a pod. ``find`` returns the Services that select a pod.

    If only the labels changed, these are the Services that select the pod either before or after the update.
    """
    changed = endpoint_changed(old, new)
    moved = old.metadata.labels != new.metadata.labels
    if not moved:
        return set(find(new)) if changed else set()
    before, after = set(find(old)), set(find(new))
    return before | after if changed else before ^ after
