"""From pods to the Services that select them, by an index of Services over one term of their selectors.

upstream: staging/src/k8s.io/endpointslice/util/controller_utils.go#GetServicesToUpdate
"""

from collections.abc import Iterable, Iterator

from kcm_cli.api.core import Pod, Service
from kcm_cli.planning.endpoints.pods import affected
from kcm_cli.runtime.informer import Informer

_INDEX = "selector"


class PodServices:
    """Maps pods to the keys of the Services that select them, and finds a Service's pods."""

    def __init__(self, services: Informer[Service], pods: Informer[Pod]) -> None:
        self._services = services.store
        self._pods = pods.store
        self._services.add_index(_INDEX, _term)

    def pods_of(self, service: Service) -> list[Pod]:
        """The pods that a Service selects, from the cache."""
        selector = (service.spec.selector or {}).items()
        return [pod for pod in self._pods.list(service.namespace) if selector <= pod.labels.items()]

    def services_of(self, pod: Pod) -> Iterator[str]:
        """The keys of the Services that select a pod."""
        labels = pod.labels
        terms = [_filed(pod.namespace, key, value) for key, value in labels.items()]
        for term in (*terms, _filed(pod.namespace, "", "")):
            for service in self._services.by_index(_INDEX, term):
                if (service.spec.selector or {}).items() <= labels.items():
                    yield service.key

    def services_of_changed(self, old: Pod, new: Pod) -> Iterable[str]:
        """The keys of the Services that a change of a pod concerns."""
        return affected(self.services_of, old, new)


def _term(service: Service) -> tuple[str, ...]:
    """Index: one term of the selector; nothing for a Service without one, which selects no pods."""
    selector = service.spec.selector
    if selector is None:
        return ()
    key = min(selector, default="")
    return (_filed(service.namespace, key, selector.get(key, "")),)


def _filed(namespace: str, key: str, value: str) -> str:
    return f"{namespace} {key}={value}"
