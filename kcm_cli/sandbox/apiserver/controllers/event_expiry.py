"""Deletes Events an hour after their last write, which is the default of kube-apiserver's --event-ttl.

upstream: pkg/registry/core/event/storage/storage.go, pkg/controlplane/apiserver/options/options.go
"""

from collections import OrderedDict

from kcm_cli.api.resource import GVR
from kcm_cli.runtime.turns import TURN_S, Part
from kcm_cli.sandbox.apiserver.registry.core import Core
from kcm_cli.sandbox.apiserver.store import Event, NotKept, Stored

EVENTS = GVR("", "v1", "events")
TTL_S, _RETRY_S = 3600.0, 60.0


class EventExpiry:
    """Deletes Events regardless of finalizers. Those of an earlier process get an hour from the start."""

    def __init__(self, core: Core) -> None:
        self._store, self._clock, self._own = core.store, core.clock, core.own
        self._due: OrderedDict[tuple[str, str], float] = OrderedDict()
        """The end of each Event by its namespace and name, in order."""
        self._waits = False
        core.store.subscribe(EVENTS, self._written)
        for stored in core.store.list(EVENTS):
            self._add(stored)

    def _written(self, event: Event) -> None:
        if event.type == "DELETED":
            self._due.pop((event.stored.namespace, event.stored.name), None)
        else:
            self._add(event.stored)

    def _add(self, stored: Stored) -> None:
        key = stored.namespace, stored.name
        self._due[key] = self._clock.monotonic() + TTL_S
        self._due.move_to_end(key)
        if not self._waits:
            self._wait(TTL_S)

    def _wait(self, seconds: float) -> None:
        self._waits = True
        self._clock.call_later(seconds, self._expire)

    def _expire(self) -> None:
        self._waits = False
        part = Part(TURN_S)
        while self._due:
            key, end = next(iter(self._due.items()))
            left_s = end - self._clock.monotonic()
            if left_s > 0 or part.is_over():
                self._wait(max(left_s, 0))
                return
            current = self._store.get(EVENTS, *key)
            try:
                if current is not None:
                    self._own.delete(EVENTS, current)
            except NotKept:
                self._wait(_RETRY_S)
                return
            self._due.pop(key, None)
