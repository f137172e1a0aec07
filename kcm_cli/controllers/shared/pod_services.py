"""Maps pods to the Services that select them, by an index of Services over one term of their selectors.

upstream: staging/src/k8s.io/endpointslice/util/controller_utils.go#GetServicesToUpdate
"""

from collections.abc import Iterable

from kcm_cli.api.core import Pod, Service
from kcm_cli.planning.endpoints.pods import affected
from kcm_cli.runtime.informer import Informer
from kcm_cli.runtime.store import NAMESPACE

_INDEX = "selector"


class PodServices:
    """Maps pods to the keys of the Services that select them, and lists a Service's pods."""

    def __init__(self, services: Informer[Service], pods: Informer[Pod]) -> None:
        self._services = services.store
        self._pods = pods.store
        self._services.add_index(_INDEX, _term)

    def pods_of(self, service: Service) -> list[Pod]:
        """The cached pods that a Service selects."""
        selector = (service.spec.selector or {}).items()
        return [pod for pod in self._pods.list(service.namespace) if selector <= pod.labels.items()]

    def services_of(self, pod: Pod) -> list[str]:
        """The keys of the Services that select a pod."""
        namespace, terms = pod.namespace, pod.labels.items()
        if not self._services.count(NAMESPACE, namespace):
            return []
        return [
            service.key
            for key, value in (*terms, ("", ""))
            for service in self._services.by_index(_INDEX, f"{namespace} {key}={value}")
            if (service.spec.selector or {}).items() <= terms
        ]

    def services_of_changed(self, old: Pod, new: Pod) -> Iterable[str]:
        """The keys of the Services that are affected by the change of a pod."""
        return affected(self.services_of, old, new)


def _term(service: Service) -> tuple[str, ...]:
    """The index function: one term of the selector. A Service without a selector is not indexed."""
    selector = service.spec.selector
    if selector is None:
        return ()
    key = min(selector, default="")
    return (f"{service.namespace} {key}={selector.get(key, '')}",)
