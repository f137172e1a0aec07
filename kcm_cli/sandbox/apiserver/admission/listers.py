"""Listers: caches of objects by namespace, updated by the store."""

from collections.abc import Iterable

from kcm_cli.api.resource import GVR
from kcm_cli.sandbox.apiserver.store import Event, Store, Stored
from kcm_cli.sandbox.apiserver.types import Tree

_NONE: dict[str, Stored] = {}


class Lister:
    """All objects of a resource. For a namespace without objects, a list takes one lookup."""

    def __init__(self, store: Store, gvr: GVR) -> None:
        self._objects: dict[str, dict[str, Stored]] = {}
        store.subscribe(gvr, self._changed)
        for stored in store.scan(gvr):
            self._objects.setdefault(stored.namespace, {})[stored.name] = stored

    def of(self, namespace: str = "") -> Iterable[Stored]:
        """The objects of a namespace, sorted by name; of an empty namespace the cluster-scoped ones."""
        objects = self._objects.get(namespace, _NONE)
        return [objects[name] for name in sorted(objects)] if objects else ()

    def get(self, namespace: str, name: str) -> Tree | None:
        """An object, or None."""
        stored = self._objects.get(namespace, _NONE).get(name)
        return None if stored is None else stored.doc

    def empty(self, namespace: str = "") -> bool:
        """Whether ``of`` the namespace is empty."""
        return namespace not in self._objects

    def _changed(self, event: Event) -> None:
        stored = event.stored
        objects = self._objects.setdefault(stored.namespace, {})
        if event.type == "DELETED":
            objects.pop(stored.name, None)
            if not objects:
                del self._objects[stored.namespace]
        else:
            objects[stored.name] = stored
