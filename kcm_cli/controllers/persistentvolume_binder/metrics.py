"""The metrics of the controller: volumes and claims by state, and durations of provisioning and deletion.

upstream: pkg/controller/volume/persistentvolume/metrics/metrics.go, pkg/volume/util/metrics.go
"""

from collections import Counter as Counted
from contextlib import AbstractContextManager

from kcm_cli.api.storage import PersistentVolume
from kcm_cli.component.clock import Clock
from kcm_cli.component.metrics import Counter, Family, Gauge, Registry, Stability
from kcm_cli.component.metrics.families import Families
from kcm_cli.component.metrics.instruments import Description
from kcm_cli.controllers.persistentvolume_binder.caches import Caches
from kcm_cli.controllers.persistentvolume_binder.plugins import UNKNOWN, plugin_of
from kcm_cli.controllers.shared.storage_operations import OPERATION_BUCKETS, StorageOperations
from kcm_cli.planning.volumes.attachable import CSI
from kcm_cli.planning.volumes.classes import class_of_claim
from kcm_cli.planning.volumes.matching import FILESYSTEM, attributes_class

Counts = Counted[tuple[str, ...]]
PROVISION, DELETE = "provision", "delete"
_OPERATION = ("plugin_name", "operation_name")


class OperationMetrics:
    """The duration of operations from the first attempt to their success, by key: a claim to provision, a volume to
    delete."""

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._clock = clock
        self._started: dict[str, tuple[float, str, str]] = {}
        self._seconds = registry.histogram(
            "volume_operation_total_seconds",
            "Seconds from the first attempt of a storage operation to its end.",
            OPERATION_BUCKETS,
            labels=_OPERATION,
        )
        self._errors = registry.counter(
            "volume_operation_errors_total", "Number of failed storage operations.", labels=_OPERATION
        )
        old = Description(
            "volume_operation_total_errors",
            "counter",
            "Number of failed storage operations.",
            _OPERATION,
            Stability.ALPHA,
            deprecated_version="1.36.0",
        )
        self._old_errors = registry.register(old, Counter)
        self._attempts = StorageOperations(registry, clock)
        self._assigned = registry.counter(
            "retroactive_storageclass_total",
            "Number of attempts to set the default class of an existing claim.",
        ).labels()
        self._not_assigned = registry.counter(
            "retroactive_storageclass_errors_total",
            "Number of failed attempts to set the default class of an existing claim.",
        ).labels()

    def started(self, key: str, plugin: str, operation: str) -> None:
        """Record the start of an operation; only the first attempt counts."""
        self._started.setdefault(key, (self._clock.monotonic(), plugin, operation))

    def ended(self, key: str) -> None:
        """Observe the duration of an operation, if it was started."""
        started = self._started.pop(key, None)
        if started is not None:
            since, plugin, operation = started
            self._seconds.labels(plugin, operation).observe(self._clock.monotonic() - since)

    def failed(self, key: str) -> None:
        """Count a failed attempt. The operation is retried."""
        started = self._started.get(key)
        if started is not None:
            _, plugin, operation = started
            self._errors.labels(plugin, operation).inc()
            self._old_errors.labels(plugin, operation).inc()

    def forget(self, key: str) -> None:
        """Drop an operation that is not retried."""
        self._started.pop(key, None)

    def attempt(self, plugin: str, operation: str) -> AbstractContextManager[None]:
        """Measures an attempt of a plugin in this process."""
        return self._attempts.measured(plugin, f"volume_{operation}")

    def assigned_class(self, *, failed: bool) -> None:
        self._assigned.inc()
        if failed:
            self._not_assigned.inc()


class CountCollector:
    """The metrics pv_collector_*, computed when they are scraped."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches

    def collect(self) -> Families:
        return [*self._volumes(), *self._claims()]

    def _volumes(self) -> Families:
        kinds, states = Counts(), Counts()
        for volume in self._caches.volumes.store.list():
            spec, state = volume.spec, "bound" if volume.status.phase == "Bound" else "unbound"
            kinds[_plugin(volume), spec.volume_mode or FILESYSTEM] += 1
            states[state, spec.storage_class_name] += 1
        yield from _gauge("total_pv_count", "Persistent volumes.", ("plugin_name", "volume_mode"), kinds)
        yield from _by_state("pv_count", "Persistent volumes that are {}.", ("storage_class",), states)

    def _claims(self) -> Families:
        states = Counts()
        for claim in self._caches.claims.store.list():
            attributes = attributes_class(claim)
            state = "bound" if claim.status.phase == "Bound" else "unbound"
            states[state, claim.namespace, class_of_claim(claim), attributes] += 1
        labels = ("namespace", "storage_class", "volume_attributes_class")
        yield from _by_state("pvc_count", "Claims of persistent volumes that are {}.", labels, states)


def _by_state(name: str, text: str, labels: tuple[str, ...], states: Counts) -> Families:
    """One gauge for each state. The state is the first of the label values."""
    for state in ("bound", "unbound"):
        counts = Counts({values[1:]: count for values, count in states.items() if values[0] == state})
        yield from _gauge(f"{state}_{name}", text.format(state), labels, counts)


def _gauge(name: str, text: str, labels: tuple[str, ...], counts: Counts) -> Families:
    family = Family(Description(f"pv_collector_{name}", "gauge", text, labels), Gauge)
    for values, count in sorted(counts.items()):
        family.labels(*values).set(count)
    return family.collect() if counts else iter(())


def _plugin(volume: PersistentVolume) -> str:
    """The plugin of a volume, for CSI with the driver, as it is named elsewhere in metrics."""
    csi = volume.spec.csi
    return f"{CSI}:{csi.driver}" if csi is not None and csi.driver else plugin_of(volume) or UNKNOWN
