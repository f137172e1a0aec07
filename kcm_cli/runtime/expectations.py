"""Creations and deletions that a controller has sent and its cache does not show yet.

A key with unfulfilled expectations must not plan creations or deletions: its cache is older than its own writes.
Unfulfilled expectations expire after five minutes, so that a lost event cannot stop a controller.

upstream: pkg/controller/controller_utils.go#UIDTrackingControllerExpectations
"""

import msgspec

TIMEOUT_S = 300.0
"""After this time an owner is synced although what was written for it has not been observed."""


class _Expected(msgspec.Struct):
    uid: str
    since: float
    creations: int = 0
    deletions: set[str] = msgspec.field(default_factory=set)

    @property
    def fulfilled(self) -> bool:
        return self.creations <= 0 and not self.deletions


class Expectations:
    """Creations are counted, deletions are tracked by object key, per controller key.

    ``uid``: of the controller's object. What was expected of one object does not hold up another one of the same name.
    """

    def __init__(self) -> None:
        self._expected: dict[str, _Expected] = {}

    def satisfied(self, key: str, now: float, uid: str = "") -> bool:
        """Whether this key may plan: nothing is expected, all of it was observed, or it has expired."""
        expected = self._expected.get(key)
        if expected is None or expected.uid != uid:
            return True
        return expected.fulfilled or now - expected.since > TIMEOUT_S

    def expired(self, key: str, now: float) -> bool:
        """Whether something that is expected was not observed in its time."""
        expected = self._expected.get(key)
        return expected is not None and not expected.fulfilled and now - expected.since > TIMEOUT_S

    def expect(
        self,
        key: str,
        now: float,
        *,
        uid: str = "",
        creations: int = 0,
        deletions: tuple[str, ...] = (),
        more: bool = False,
    ) -> None:
        """Set what is expected, in place of what was: only a satisfied key plans. more: on top of what was, for a plan
        whose writes go out in several steps."""
        if not more:
            self.forget(key)
        expected = self._expected.setdefault(key, _Expected(uid, now))
        expected.creations += creations
        expected.deletions.update(deletions)

    def creation_observed(self, key: str) -> None:
        """One creation was observed, or is not expected any more because it failed or was skipped."""
        expected = self._expected.get(key)
        if expected is not None:
            expected.creations -= 1

    def deletion_observed(self, key: str, deleted: str) -> None:
        """The same for one deletion."""
        expected = self._expected.get(key)
        if expected is not None:
            expected.deletions.discard(deleted)

    def forget(self, key: str) -> None:
        """The controller's object was deleted."""
        self._expected.pop(key, None)
