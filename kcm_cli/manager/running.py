"""What the manager shows of the controllers that run: a health check and a metric each.

upstream: staging/src/k8s.io/component-base/metrics/prometheus/controllers, cmd/kube-controller-manager/app
"""

from kcm_cli.component.health import HealthChecks, always_healthy
from kcm_cli.component.metrics import Registry, Stability

MANAGER = "kube-controller-manager"


class RunningControllers:
    """Told by the controllers' start and end. A controller that crashes ends the process, so its check never fails."""

    def __init__(self, health: HealthChecks, registry: Registry) -> None:
        self._health = health
        self._running = registry.gauge(
            "running_managed_controllers",
            "Whether a controller runs.",
            labels=("manager", "name"),
            stability=Stability.BETA,
        )

    def started(self, controller: str) -> None:
        """A controller begins to run."""
        if controller not in self._health.names:
            self._health.add(controller, always_healthy)
        self._running.labels(MANAGER, controller).set(1.0)

    def ended(self, controller: str) -> None:
        """A controller has ended."""
        self._running.labels(MANAGER, controller).set(0.0)
