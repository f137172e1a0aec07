"""Whether ConfigMaps and Secrets that new pods refer to exist: known if they were read or applied, assumed otherwise.

What pods of the snapshot that have started refer to does exist.
"""

from collections import deque
from collections.abc import Callable

import msgspec

from kcm_cli.api.resource import GVR
from kcm_cli.machinery import codec
from kcm_cli.plan.snapshot import Snapshot
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.nodes.references import References
from kcm_cli.sandbox.views import CONFIG_MAP_KEYS, SECRET_KEYS, Keyed, SimulatedPod, containers_of

_RESOURCES = {"ConfigMap": CONFIG_MAP_KEYS.gvr, "Secret": SECRET_KEYS.gvr}


class _Keys(msgspec.Struct, frozen=True):
    """The keys of an object that was not read: each may be there, and is reported."""

    asked: Callable[[str], object]

    def __contains__(self, key: object) -> bool:
        self.asked(str(key))
        return True


class _Unread(msgspec.Struct, frozen=True):
    """Implements ``references.Entries`` for an object that was not read."""

    data: _Keys
    binary_data: None = None


class Existence:
    """assumed: what has to exist, as text."""

    def __init__(self, snapshot: Snapshot, store: Store) -> None:
        self._store = store
        self._read = {kind for kind, gvr in _RESOURCES.items() if _is_read(snapshot, gvr)}
        self._used: set[tuple[str, str, str]] = set()
        self.assumed: set[str] = set()
        self._recorded = References(self._recorder("ConfigMap"), self._recorder("Secret"))
        self.references = References(self._finder("ConfigMap"), self._finder("Secret"))

    def used_by(self, pod: SimulatedPod) -> None:
        """Note what a pod of the snapshot refers to that has started."""
        self._recorded.of_volumes(pod)
        for container in containers_of(pod):
            deque(self._recorded.of_variables(pod, container), 0)

    def _recorder(self, kind: str) -> Callable[[str], _Unread]:
        def find(key: str) -> _Unread:
            self._used.add((kind, key, ""))
            return _Unread(_Keys(lambda name: self._used.add((kind, key, name))))

        return find

    def _finder(self, kind: str) -> Callable[[str], Keyed | _Unread | None]:
        def find(key: str) -> Keyed | _Unread | None:
            namespace, _, name = key.partition("/")
            stored = self._store.get(_RESOURCES[kind], namespace, name)
            found = codec.decode_or_none(stored.data, Keyed) if stored is not None else None
            if kind in self._read or (found is not None and stored is not None):
                return found
            if (kind, key, "") in self._used:
                return _Unread(_Keys(lambda part: self._has_key(kind, key, part)))
            self.assumed.add(f"{kind} {key}, which was not read, exists")
            return _Unread(_Keys(lambda part: None))

        return find

    def _has_key(self, kind: str, key: str, name: str) -> None:
        if (kind, key, name) not in self._used:
            self.assumed.add(f"{kind} {key}, which was not read, has the key {name}")


def _is_read(snapshot: Snapshot, gvr: GVR) -> bool:
    partial = any(gap.resource == gvr.group_resource for gap in snapshot.gaps)
    return gvr in snapshot.collections and not partial
