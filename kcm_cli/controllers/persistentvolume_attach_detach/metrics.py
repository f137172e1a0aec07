"""The metrics of the attach/detach controller: volumes, forced detaches, and durations of operations.

upstream: pkg/controller/volume/attachdetach/metrics/metrics.go
"""

from collections import Counter
from collections.abc import Mapping

from kcm_cli.component.clock import Clock
from kcm_cli.component.metrics import Registry
from kcm_cli.component.metrics.instruments import Family, Gauge
from kcm_cli.controllers.shared.storage_operations import StorageOperations

DESIRED, ACTUAL = "desired_state_of_world", "actual_state_of_world"
Labels = tuple[str, str]


class AttachDetachMetrics:
    """The metrics. Counts are updated with each change, so that a scrape computes nothing."""

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._forced = registry.counter(
            "attach_detach_controller_attachdetach_controller_forced_detaches",
            "Number of volumes that were detached although their nodes had not unmounted them.",
            labels=("reason",),
        )
        self.operations = StorageOperations(registry, clock)
        self._volumes = _Sums(
            registry.gauge(
                "attachdetach_controller_total_volumes",
                "Volumes that are to be attached, and that are attached.",
                labels=("plugin_name", "state"),
            )
        )
        self._in_use = _Sums(
            registry.gauge(
                "storage_count_attachable_volumes_in_use",
                "Volumes of the pods of a node.",
                labels=("node", "volume_plugin"),
            )
        )

    def forced(self, reason: str) -> None:
        self._forced.labels(reason).inc()

    def volume(self, name: str, plugin: str, desired: int, actual: int) -> None:
        """Set the numbers of nodes to which a volume should be attached, and is attached."""
        self._volumes.set(name, {(plugin, DESIRED): desired, (plugin, ACTUAL): actual})

    def pod(self, uid: str, node: str, plugins: list[str]) -> None:
        """Set the plugins of a pod's volumes; none for a deleted pod."""
        self._in_use.set(uid, Counter((node, plugin) for plugin in plugins))


class _Sums:
    """Sums over many sources. A sum of 0 is not exposed."""

    def __init__(self, family: Family[Gauge]) -> None:
        self._family = family
        self._sums: Counter[Labels] = Counter()
        self._counts: dict[str, dict[Labels, int]] = {}

    def set(self, source: str, counts: Mapping[Labels, int]) -> None:
        """Replace the counts of a source."""
        now = {labels: count for labels, count in counts.items() if count}
        before = self._counts.get(source, {})
        if now == before:
            return
        if now:
            self._counts[source] = now
        else:
            del self._counts[source]
        for labels in now.keys() | before.keys():
            self._add(labels, now.get(labels, 0) - before.get(labels, 0))

    def _add(self, labels: Labels, change: int) -> None:
        self._sums[labels] += change
        if self._sums[labels]:
            self._family.labels(*labels).set(self._sums[labels])
        else:
            del self._sums[labels]
            self._family.remove(*labels)
