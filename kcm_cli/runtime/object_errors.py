"""Reports objects that cannot be decoded, and objects for which a listener raises.

Each version of an object is counted once, even if several caches meet it repeatedly. An object is logged and reported
in an Event once, as long as it is remembered: at most BURST at once, and one in PERIOD_S.
"""

import logging
from collections.abc import Callable
from typing import Any

from kcm_cli.api.resource import Resource, Undecodable
from kcm_cli.component.logs import V4
from kcm_cli.component.metrics import Registry
from kcm_cli.machinery.quoting import bounded, listed
from kcm_cli.machinery.recent import Bounded, Recent
from kcm_cli.planning.actions import EventRef, Notice
from kcm_cli.rest.errors import FOREIGN_LIMIT
from kcm_cli.rest.ratelimit import TokenBucket

log = logging.getLogger(__name__)

MOST = 4096
"""The number of objects that are remembered. Beyond that, the oldest ones may be reported again."""
SHOWN = 3
BURST, PERIOD_S = 50, 10.0
REASON = "Undecodable"


class ObjectErrors:
    """Shared by the informers of a process. ``warnings`` may be called from any thread."""

    def __init__(
        self,
        metrics: Registry | None = None,
        emit: Callable[[Notice], None] = lambda notice: None,
        now: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """now: monotonic seconds."""
        metrics = metrics or Registry()
        self._emit = emit
        self._now = now
        self._told = Recent(MOST)
        self._limit = TokenBucket(1 / PERIOD_S, BURST)
        self._versions: Bounded[tuple[str, str], tuple[str, str]] = Bounded(MOST)
        self._skipped = Recent(MOST)
        self._undecodable = metrics.counter(
            "kcm_undecodable_objects_total",
            "Number of objects (each version once) that could not be decoded, and of watch events of an unknown type "
            "or with an object of another kind.",
            labels=("resource",),
        )
        self._failed = metrics.counter(
            "kcm_listener_errors_total",
            "Number of changes that a controller missed because its listener raised an error.",
            labels=("resource",),
        )
        self._stalled = metrics.gauge(
            "kcm_informer_stalled",
            "Number of informers whose lists and watches have failed for a minute: controllers see an old state.",
            labels=("resource",),
        )

    def undecodable(self, resource: Resource[Any], obj: Undecodable) -> None:
        """An object of a list or watch could not be decoded."""
        place, meta = (str(resource), obj.key), obj.metadata
        version = (meta.uid, meta.resource_version)
        known = self._versions.get(place)
        self._versions[place] = version
        if known == version:
            return
        self._undecodable.labels(resource.plural).inc()
        told = (*place, meta.uid)
        if told in self._told or not self._limit.try_take(self._now()):
            self._log(V4, resource, obj)
            return
        self._told.add(told)
        self._log(logging.ERROR, resource, obj)
        if meta.name and resource.kind != "Event":
            why = bounded(obj.why, FOREIGN_LIMIT)
            ref = EventRef(resource.api_version, resource.kind, meta.namespace, meta.name, meta.uid)
            message = f"kube-controller-manager cannot decode this object, controllers do not see this version: {why}"
            self._emit(Notice(ref, "Warning", REASON, message))

    def _log(self, level: int, resource: Resource[Any], obj: Undecodable) -> None:
        why = bounded(obj.why, FOREIGN_LIMIT)
        fields = {
            "resource": str(resource),
            "key": obj.key,
            "resourceVersion": obj.metadata.resource_version,
            "err": why,
        }
        log.log(level, "Object cannot be decoded, it is unknown until its next version", extra={"fields": fields})

    def skipped(self, resource: Resource[Any], why: str) -> None:
        """A watch has sent an event that is no change of its kind. All are counted; the first of each sort is
        logged."""
        self._undecodable.labels(resource.plural).inc()
        sort = (str(resource), bounded(why, FOREIGN_LIMIT))
        known = sort in self._skipped
        self._skipped.add(sort)
        if not known:
            fields = {"resource": sort[0], "err": sort[1]}
            log.error("Unexpected watch event skipped", extra={"fields": fields})

    def decoded(self, resource: Resource[Any], key: str) -> None:
        """A later version could be decoded, or the object has been deleted."""
        self._versions.pop((str(resource), key), None)

    def forget(self, resource: Resource[Any]) -> None:
        """Its objects are not followed any more."""
        for place in [place for place in self._versions if place[0] == str(resource)]:
            del self._versions[place]

    def listener_failed(self, resource: Resource[Any], key: str, error: Exception) -> None:
        """A listener raised for an object."""
        self._failed.labels(resource.plural).inc()
        fields = {"resource": str(resource), "key": key, "err": str(error)}
        log.error(
            "Listener failed, its controller goes on without this change", extra={"fields": fields}, exc_info=error
        )

    def stalled(self, resource: Resource[Any], change: int) -> None:
        """change: 1 where an informer makes no progress, -1 where it does again, or has ended."""
        stalled = self._stalled.labels(resource.plural)
        stalled.inc(change)
        if not stalled.value:
            self._stalled.remove(resource.plural)  # definitions come and go

    def warnings(self) -> list[str]:
        """The objects that cannot be decoded at present, as text: one line for each resource."""
        found: dict[str, list[str]] = {}
        for resource, key in tuple(self._versions):
            found.setdefault(resource, []).append(key or "(without a name)")
        lines: list[str] = []
        for resource, keys in sorted(found.items()):
            lines.append(f"{len(keys)} objects of {resource} cannot be decoded: {listed(keys, SHOWN)}")
        return lines
