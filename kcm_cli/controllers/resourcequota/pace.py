"""When the usage of a quota may be lowered.

Admission charges an object before it is stored, and the caches show it later still. A recount in between finds less
than what was charged. So usage is lowered in two cases only:

- Something was released, and the quota was not recounted just now (``recount_s``). A charge that the caches do not show
  yet makes the write conflict. One that follows the recount is found by the check.
- Nothing was charged for so long that no request is under way (``lowering_s``).

A release that the caches showed before the charges of a quota queues a second recount (``is_behind``).

upstream: none; it recounts every five minutes, and after each release in a namespace
"""

from kcm_cli.api.core import ResourceQuota
from kcm_cli.component.clock import Clock
from kcm_cli.machinery.meta import ObjectMeta, number_of

PACE_S = 1.0
"""The shortest time between two recounts of a quota because objects were released, and the delay of a check."""
REQUEST_S = 60.0
"""The longest time between the charge of an object and its creation: the API server's --request-timeout."""

_NEVER = float("-inf")


class Pace:
    """The times of recounts, charges and releases. Keys are quotas."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._recounted: dict[str, float] = {}
        self._charged: dict[str, float] = {}
        self._released: dict[str, int] = {}
        """The version of the object that was released last, by namespace."""

    def recounted(self, key: str) -> None:
        """The quota is recounted now."""
        self._recounted[key] = self._clock.monotonic()

    def charged(self, key: str) -> None:
        """The usage of the quota has changed."""
        self._charged[key] = self._clock.monotonic()

    def released(self, meta: ObjectMeta) -> None:
        """An object of which this is the last version was released."""
        version = number_of(meta.resource_version)
        self._released[meta.namespace] = max(version, self._released.get(meta.namespace, 0))

    def recount_s(self, key: str) -> float:
        """Seconds until the quota may be recounted because of a release; negative for the past."""
        return self._recounted.get(key, _NEVER) + PACE_S - self._clock.monotonic()

    def lowering_s(self, key: str) -> float:
        """Seconds until no request is under way whose charge a check could take away; negative for the past."""
        return self._charged.get(key, _NEVER) + REQUEST_S - self._clock.monotonic()

    def is_behind(self, quota: ResourceQuota) -> bool:
        """Whether something was released since this version of a quota, which a recount may have been based on."""
        return quota.version < self._released.get(quota.namespace, 0)

    def forget(self, key: str) -> None:
        self._recounted.pop(key, None)
        self._charged.pop(key, None)

    def forget_namespace(self, namespace: str) -> None:
        self._released.pop(namespace, None)
