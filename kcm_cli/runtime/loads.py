"""The metrics of the work queues in upstream's dynamic certificates, whose only key is a file or ConfigMap.

kcm has no such queues. Loads are counted where they occur, under the names of upstream's queues.

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
    """Counts loads. ``queues``: returns the metrics of a queue by its name."""

    def __init__(self, clock: Clock, queues: Callable[[str], QueueMetrics | None] = lambda name: None) -> None:
        self._clock = clock
        self._queues = queues
        self._known: dict[str, QueueMetrics] = {}

    def now(self) -> float:
        """The present time, to pass to ``loaded`` when the load has ended."""
        return self._clock.monotonic()

    def loaded(self, queue: str, since: float) -> None:
        """Count a load that began at ``since``."""
        metrics = self._known.get(queue)
        if metrics is None:
            metrics = self._known[queue] = self._queues(queue) or NoMetrics()
        metrics.added(_KEY, 1, since)
        metrics.taken(_KEY, 0, since)
        metrics.finished(_KEY, self.now())
