"""What the statefulset controller counts: syncs put off, and how rolling updates use what they may take down."""

from kcm_cli.component.metrics import Registry
from kcm_cli.engine.own_writes import stale_sync_skips
from kcm_cli.machinery.meta import Object

_LABELS = ("statefulset_namespace", "statefulset_name", "pod_management_policy")
_POLICIES = ("OrderedReady", "Parallel")


class StatefulSetMetrics:
    """statefulset_controller_*."""

    def __init__(self, registry: Registry) -> None:
        self.skipped = stale_sync_skips(registry, "statefulset", "StatefulSet")
        self._allowed = registry.gauge(
            "statefulset_controller_statefulset_max_unavailable",
            "How many pods a rolling update of the StatefulSet may take down.",
            labels=_LABELS,
        )
        self._down = registry.gauge(
            "statefulset_controller_statefulset_unavailable_replicas",
            "How many pods of the StatefulSet are missing or not available.",
            labels=_LABELS,
        )

    def allowed(self, set_: Object, policy: str, count: int) -> None:
        self._allowed.labels(set_.namespace, set_.name, policy).set(count)

    def down(self, set_: Object, policy: str, count: int) -> None:
        self._down.labels(set_.namespace, set_.name, policy).set(count)

    def forget(self, namespace: str, name: str) -> None:
        """The StatefulSet is gone."""
        for policy in _POLICIES:
            self._allowed.remove(namespace, name, policy)
            self._down.remove(namespace, name, policy)
