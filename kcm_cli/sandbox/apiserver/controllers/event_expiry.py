"""Deletes Events an hour after their last write, which is the default of kube-apiserver's --event-ttl.

upstream: pkg/registry/core/event/storage/storage.go, pkg/controlplane/apiserver/options/options.go
"""

from collections import deque

from kcm_cli.api.resource import GVR
from kcm_cli.sandbox.apiserver.registry.core import Core
from kcm_cli.sandbox.apiserver.store import Event, NotKept, Stored

EVENTS = GVR("", "v1", "events")
TTL_S, _RETRY_S = 3600.0, 60.0


class EventExpiry:
    """Deletes Events regardless of finalizers. Those of an earlier process get an hour from the start."""

    def __init__(self, core: Core) -> None:
        self._store, self._clock, self._own = core.store, core.clock, core.own
        self._due: deque[tuple[float, str, str, int]] = deque()
        """The end, namespace, name and revision of each write."""
        core.store.subscribe(EVENTS, self._written)
        for stored in core.store.list(EVENTS):
            self._add(stored)

    def _written(self, event: Event) -> None:
        if event.type != "DELETED":
            self._add(event.stored)

    def _add(self, stored: Stored) -> None:
        self._due.append((self._clock.monotonic() + TTL_S, stored.namespace, stored.name, stored.revision))
        if len(self._due) == 1:
            self._clock.call_later(TTL_S, self._expire)

    def _expire(self) -> None:
        while self._due:
            end, namespace, name, revision = self._due[0]
            left_s = end - self._clock.monotonic()
            if left_s > 0:
                self._clock.call_later(left_s, self._expire)
                return
            current = self._store.get(EVENTS, namespace, name)
            if current is not None and current.revision == revision:
                try:
                    self._own.delete(EVENTS, current)
                except NotKept:
                    self._clock.call_later(_RETRY_S, self._expire)
                    return
            self._due.popleft()
