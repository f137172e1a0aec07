"""Maps pods to the Services that select them, and Services to their pods.

upstream: staging/src/k8s.io/endpointslice/util/controller_utils.go#GetServicesToUpdate
"""

from collections.abc import Iterable

from kcm_cli.api.core import Pod, Service
from kcm_cli.machinery.labels import NOTHING, Selector, from_labels
from kcm_cli.planning.endpoints.pods import affected
from kcm_cli.runtime.informer import Informer
from kcm_cli.runtime.label_indexes import LabelIndex, SelectorIndex


class PodServices:
    """Maps pods to the keys of the Services that select them, and lists a Service's pods."""

    def __init__(self, services: Informer[Service], pods: Informer[Pod]) -> None:
        self._services = SelectorIndex.of(services.store, _selector_of)
        self._pods = LabelIndex.of(pods.store)

    async def prepare(self, service: Service) -> None:
        """Let ``pods_of`` find what it looks for, without a long step of the loop."""
        await self._pods.prepare(service.namespace, _selector_of(service))

    def pods_of(self, service: Service) -> list[Pod]:
        """The cached pods that a Service selects."""
        return self._pods.selected(service.namespace, from_labels(service.spec.selector or {}))

    def services_of(self, pod: Pod) -> list[str]:
        """The keys of the Services that select a pod."""
        return [service.key for service in self._services.selecting(pod.namespace, pod.labels)]

    def services_of_changed(self, old: Pod, new: Pod) -> Iterable[str]:
        """The keys of the Services that are affected by the change of a pod."""
        return affected(self.services_of, old, new)


def _selector_of(service: Service) -> Selector:
    """An empty selector selects all pods of the namespace, none at all selects no pod."""
    selector = service.spec.selector
    return NOTHING if selector is None else from_labels(selector)
