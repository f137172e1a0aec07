"""The work queues of upstream's dynamic certificates, whose only key is their file or ConfigMap.

kcm reads these one after the other, so nothing waits; what is loaded is counted where it is, under upstream's names.

upstream: staging/src/k8s.io/apiserver/pkg/server/dynamiccertificates, authentication/request/headerrequest
"""

from collections.abc import Callable

from kcm_cli.component.clock import Clock
from kcm_cli.runtime.workqueue import NoMetrics, QueueMetrics

SERVING = "DynamicServingCertificateController"
SERVING_FILES = "DynamicCABundle-serving-cert"
CLIENT_CA_FILE = "DynamicCABundle-client-ca-bundle"
PROXY_CA_FILE = "DynamicCABundle-request-header"
CLIENT_CA_CONFIG_MAP = "DynamicConfigMapCABundle-client-ca"
PROXY_HEADERS_CONFIG_MAP = "RequestHeaderAuthRequestController"
_KEY = "key"


class Loads:
    """Counts what is loaded. ``queues``: the metrics of a queue by its name."""

    def __init__(self, clock: Clock, queues: Callable[[str], QueueMetrics | None] = lambda name: None) -> None:
        self._clock = clock
        self._queues = queues
        self._known: dict[str, QueueMetrics] = {}

    def now(self) -> float:
        """To be given to ``loaded`` where the loading ends."""
        return self._clock.monotonic()

    def loaded(self, queue: str, since: float) -> None:
        """It was noticed that something changed, and that is loaded now."""
        metrics = self._known.get(queue)
        if metrics is None:
            metrics = self._known[queue] = self._queues(queue) or NoMetrics()
        metrics.added(_KEY, 1, since)
        metrics.taken(_KEY, 0, since)
        metrics.finished(_KEY, self.now())
