"""Pods whose tracking finalizer this controller has removed, until the cache shows it.

Such a pod looks unfinished in the cache though it is counted already: counting it again would count it twice. Kept
beside the expectations of creations and deletions, because it never holds a sync up.

upstream: pkg/controller/job/tracking_utils.go#uidTrackingExpectations
"""

from collections.abc import Iterable


class Released:
    """Uids of pods by the key of their Job."""

    def __init__(self) -> None:
        self._uids: dict[str, set[str]] = {}

    def of(self, key: str) -> frozenset[str]:
        """The pods of this Job that are counted although the cache shows their finalizer."""
        return frozenset(self._uids.get(key, ()))

    def expect(self, key: str, uids: Iterable[str]) -> None:
        """Their finalizers are about to be removed."""
        self._uids.setdefault(key, set()).update(uids)

    def observed(self, key: str, uid: str) -> None:
        """The cache shows the pod without its finalizer, or the removal has failed."""
        uids = self._uids.get(key)
        if uids is not None:
            uids.discard(uid)
            if not uids:
                del self._uids[key]

    def forget(self, key: str) -> None:
        """The Job is gone."""
        self._uids.pop(key, None)
