"""Our own writes that the cache has not shown yet.

A controller that plans on an object older than its own last write plans twice what it has done, and its next write
is refused. Resource versions are numbers that grow with every write, so that older can be told.

upstream: pkg/controller/util/consistency (gates StaleControllerConsistency*)
"""

from kcm_cli.machinery.meta import Object

AGAIN_S = 1.0
"""The watch brings a stale key back at once; this is how long to wait where it does not."""


class Freshness:
    """Remembers the version of each object as this controller wrote it last, by uid."""

    def __init__(self) -> None:
        self._written: dict[str, int] = {}

    def wrote(self, obj: Object) -> None:
        """Note the server's answer to a write."""
        version = obj.metadata.resource_version
        if version.isdigit():
            self._written[obj.uid] = int(version)

    def stale(self, obj: Object) -> bool:
        """Whether the cached object is older than what we wrote."""
        written = self._written.get(obj.uid)
        if written is None:
            return False
        version = obj.metadata.resource_version
        if version.isdigit() and int(version) < written:
            return True
        del self._written[obj.uid]
        return False

    def forget(self, obj: Object) -> None:
        """The object is gone."""
        self._written.pop(obj.uid, None)
