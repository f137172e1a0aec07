"""The health checks and metrics of controllers and their caches.

upstream: staging/src/k8s.io/component-base/metrics/prometheus/controllers, cmd/kube-controller-manager/app
"""

import asyncio
from collections.abc import Callable

from kcm_cli.component.health import HealthChecks, Warnings
from kcm_cli.component.metrics import Registry, Stability
from kcm_cli.component.metrics.informers import InformerCollector, States

MANAGER = "kube-controller-manager"


class RunningControllers:
    """Observes the start and end of controllers.

    The health check of a controller fails if it ended by itself. One that crashes ends the process.
    """

    def __init__(self, health: HealthChecks, registry: Registry) -> None:
        self._health = health
        self._ended: set[str] = set()
        self._labels: dict[str, str] = {}
        self._caches = InformerCollector(registry)
        self.names: set[str] = set()
        self.first_started = asyncio.Event()
        """Set once a controller runs."""
        self.all_started: Callable[[], object] = lambda: None
        """Called when no controller is left to start."""
        self._running = registry.gauge(
            "running_managed_controllers",
            "Whether a controller runs.",
            labels=("manager", "name"),
            stability=Stability.BETA,
        )

    def built(self, controller: str, label: str = "") -> None:
        """A controller was built and is about to run. ``label``: in ``running_managed_controllers``, if it is there."""
        self._labels[controller] = label
        self._ended.discard(controller)
        if controller not in self._health.names:
            self._health.add(controller, self._check(controller))

    def started(self, controller: str) -> None:
        """A controller started."""
        self.first_started.set()
        self.names.add(controller)
        self._show(controller, 1.0)

    def ended(self, controller: str, *, stopped: bool) -> None:
        """A controller ended. ``stopped``: because it was stopped."""
        self.names.discard(controller)
        self._show(controller, 0.0)
        if not stopped:
            self._ended.add(controller)

    def caches(self, states: States) -> None:
        """Add caches to measure."""
        self._caches.add(states)

    def warn(self, warnings: Warnings) -> None:
        """Add warnings to show with the health checks."""
        self._health.warn(warnings)

    def _show(self, controller: str, value: float) -> None:
        if label := self._labels.get(controller):
            self._running.labels(MANAGER, label).set(value)

    def _check(self, controller: str) -> Callable[[], str | None]:
        return lambda: "the controller has ended" if controller in self._ended else None
