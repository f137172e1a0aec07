"""The cache of one resource: objects by key, and indexes kept with every change.

One writer (the reflector), many readers. Reads are synchronous and never copy: objects are frozen.

An object whose latest version could not be decoded is *unknown*: it exists, and must not be treated as absent. If an
earlier version was decoded, the store keeps that one.
"""

import logging
from builtins import list as List  # the class has a method of that name
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from kcm_cli.api.core import Pod
from kcm_cli.api.resource import Undecodable
from kcm_cli.machinery.meta import Object, controller_of

log = logging.getLogger(__name__)
T = TypeVar("T", bound=Object)

IndexFunc = Callable[[T], Iterable[str]]


def by_controller(obj: Object) -> tuple[str, ...]:
    """Index: the uid of the controlling owner; objects without one are filed under their namespace's orphans. A uid in
    a reference is the word of whoever wrote it: ``controlled_by`` leaves out objects of other namespaces."""
    ref = controller_of(obj)
    return (ref.uid,) if ref is not None else (orphans_of(obj.namespace),)


def orphans_of(namespace: str) -> str:
    """The value under which ``by_controller`` files the orphans of a namespace."""
    return f"/{namespace}"


def by_node(pod: Pod) -> tuple[str, ...]:
    """Index: the name of the node that a pod is bound to; empty for one that is not."""
    return (pod.spec.node_name,)


CONTROLLER_UID = "controller"
NODE = "node"
NAMESPACE = "namespace"


class Store(Generic[T]):
    """Objects by key, with indexes by name."""

    def __init__(self) -> None:
        self._objects: dict[str, T] = {}
        self._unknown: dict[str, Undecodable] = {}
        self._funcs: dict[str, IndexFunc[T]] = {}
        self._indexes: dict[str, dict[str, dict[str, T]]] = {}
        self._companions: dict[str, Any] = {}
        self.add_index(NAMESPACE, lambda obj: (obj.namespace,))

    def add_index(self, name: str, func: IndexFunc[T]) -> None:
        """Add an index of all objects, unless there is one of this name."""
        if name in self._funcs:
            return
        self._funcs[name] = func
        self._indexes[name] = {}
        for key, obj in self._objects.items():
            self._file(name, key, obj)

    def companion(self, name: str, make: Callable[[], Any]) -> Any:
        """The one object of this name that belongs to the store, such as an index with a state; made once."""
        if name not in self._companions:
            self._companions[name] = make()
        return self._companions[name]

    def filed_again(self, index: str, namespace: str) -> Iterator[None]:
        """File the objects that a namespace has now under the values that they have by then, in addition to those they
        had: one in each step, between which objects may be put and popped."""
        for key in tuple(self._indexes[NAMESPACE].get(namespace, ())):
            obj = self._objects.get(key)
            if obj is not None:
                self._file(index, key, obj)
            yield

    def forget(self, index: str, prefix: str) -> None:
        """Drop the values of an index that begin with a prefix. Its function must not return them any more."""
        values = self._indexes[index]
        for value in [value for value in values if value.startswith(prefix)]:
            del values[value]

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        return iter(self._objects.values())

    def keys(self) -> set[str]:
        """The keys of all objects."""
        return set(self._objects)

    def get(self, key: str) -> T | None:
        """The object with this key (``namespace/name``, or ``name``); None if there is none."""
        return self._objects.get(key)

    def list(self, namespace: str = "") -> List[T]:
        """The objects of a namespace, or all, in no order."""
        if not namespace:
            return list(self._objects.values())
        return self.by_index(NAMESPACE, namespace)

    def by_index(self, index: str, value: str) -> List[T]:
        """The objects with this value. Raises KeyError for an index that was not added."""
        return list(self._indexes[index].get(value, {}).values())

    def count(self, index: str, value: str) -> int:
        """The number of objects with this value."""
        return len(self._indexes[index].get(value, ()))

    def index_values(self, index: str) -> List[str]:
        """All values that some object has."""
        return list(self._indexes[index])

    def unknown(self) -> Mapping[str, Undecodable]:
        """By key, the objects whose latest version could not be decoded."""
        return self._unknown

    def is_unseen(self, key: str) -> bool:
        """Whether the key's object exists, but no version of it could be decoded."""
        return key in self._unknown and key not in self._objects

    def unseen(self, namespace: str = "") -> List[Undecodable]:
        """The objects of which no version could be decoded. Counts over the store lack them."""
        return [
            one
            for key, one in self._unknown.items()
            if key not in self._objects and namespace in ("", one.metadata.namespace)
        ]

    def unknown_of(self, owner: Object) -> List[Undecodable]:
        """The unknown objects that this owner controls."""
        found = (one for one in self._unknown.values() if _controller_uid(one) == owner.uid)
        return [one for one in found if owner.namespace in ("", one.metadata.namespace)] if self._unknown else []

    def mark_unknown(self, obj: Undecodable) -> None:
        """Mark an object as unknown, until it is put or popped."""
        self._unknown[obj.key] = obj

    def put(self, obj: T) -> T | None:
        """Add or replace; returns what was there before."""
        key = obj.key
        if self._unknown:
            self._unknown.pop(key, None)
        old = self._objects.get(key)
        self._objects[key] = obj
        for name, func in self._funcs.items():
            index = self._indexes[name]
            try:  # as in _values, which costs a call for each index
                values = tuple(func(obj))
            except Exception as error:  # noqa: BLE001  # one object must not keep the others out of the store
                values = self._not_filed(name, obj, error)
            if old is not None and self._values(name, func, old) != values:
                self._unindex(name, key, old)
            for value in values:
                entries = index.get(value)
                if entries is None:
                    index[value] = {key: obj}
                else:
                    entries[key] = obj
        return old

    def pop(self, key: str) -> T | None:
        """Remove; returns what was there."""
        self._unknown.pop(key, None)
        old = self._objects.pop(key, None)
        if old is not None:
            for name in self._funcs:
                self._unindex(name, key, old)
        return old

    def _values(self, name: str, func: IndexFunc[T], obj: T) -> tuple[str, ...]:
        """The values of an object in an index; none where the index function raises."""
        try:
            return tuple(func(obj))
        except Exception as error:  # noqa: BLE001  # as above
            return self._not_filed(name, obj, error)

    def _not_filed(self, name: str, obj: T, error: Exception) -> tuple[str, ...]:
        fields = {"index": name, "object": obj.key, "err": str(error)}
        log.error("Index function failed, object not indexed", extra={"fields": fields}, exc_info=error)
        return ()

    def _file(self, name: str, key: str, obj: T) -> None:
        for value in self._values(name, self._funcs[name], obj):
            self._indexes[name].setdefault(value, {})[key] = obj

    def _unindex(self, name: str, key: str, obj: T) -> None:
        index = self._indexes[name]
        for value in self._values(name, self._funcs[name], obj):
            entries = index.get(value)
            if entries is not None:
                entries.pop(key, None)
                if not entries:
                    del index[value]


class UnknownDependents(Exception):
    """Some dependents of an owner cannot be decoded. They would look missing, and would be created again and again."""

    reason = "UnknownDependents"


def controlled_by(store: Store[T], namespace: str, uid: str) -> List[T]:
    """The objects that the owner with this namespace and uid controls. Those of other namespaces are none of it, unless
    it has no namespace itself. The store must have the index ``by_controller``."""
    found = store.by_index(CONTROLLER_UID, uid)
    return [one for one in found if one.namespace == namespace] if namespace else found


def claimable(store: Store[T], owner: Object) -> List[T]:
    """The objects that this owner controls, and the orphans: all that it may keep, adopt or release.

    Raises UnknownDependents.
    """
    unseen = [one.key for one in store.unknown_of(owner) if store.get(one.key) is None]
    if unseen:
        raise UnknownDependents(f"{', '.join(sorted(unseen)[:5])} cannot be decoded: cannot tell what is missing")
    own = controlled_by(store, owner.namespace, owner.uid)
    return own + store.by_index(CONTROLLER_UID, orphans_of(owner.namespace))


def _controller_uid(obj: Undecodable) -> str:
    return next((ref.uid for ref in obj.metadata.owner_references if ref.controller), "")
