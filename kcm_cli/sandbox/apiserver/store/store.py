"""The store: objects of all resources with common revisions, optimistic concurrency, and watches.

All methods are synchronous and so atomic on the loop. Each write increments the revision by one. Objects are stored
encoded, and responses have these bytes.

Guarantees: a watch has every write after its revision once, in order. With a journal, a write has been passed to the
kernel (and survives SIGKILL) before the method returns. Not guaranteed: durability at power failures; history from
before the start (such a watch gets ``Compacted``).
"""

import heapq
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

import msgspec

from kcm_cli.api.resource import GVR
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import object_key
from kcm_cli.machinery.same import same
from kcm_cli.sandbox.apiserver.store.errors import AlreadyExists, Compacted, Conflict, NotFound
from kcm_cli.sandbox.apiserver.store.log import EventLog, Watcher
from kcm_cli.sandbox.apiserver.store.stored import Event, EventType, Recent, Stored

KEPT_EVENTS = 20_000
"""Events kept per resource: 60 MB for pods of 3 kB, and several minutes of a busy cluster."""
KEPT_DOCUMENTS = 100
"""Decoded documents kept in addition to the bytes: those of requests that follow at once. Python's garbage collector
looks at each list and map of those that are young: with 2,000 of them a collection took 70 ms, and up to 270 with
100,000 pods."""


Check = Callable[[Stored], None]
"""Called with a version before it is kept; it may raise."""


def _accept(stored: Stored) -> None:
    """Accept any version."""


class Journal(Protocol):
    """Durable storage of writes (``persistence.SqliteJournal``)."""

    def load(self) -> tuple[int, Iterable[tuple[GVR, str, str, int, bytes]]]:
        """The latest revision, and (resource, namespace, name, revision, data) of each object."""

    def write(self, gvr: GVR, stored: Stored, deleted: bool) -> None:
        """Make a write durable. Raises NotKept."""

    def close(self) -> None:
        """Close the files."""


class StoreContent(msgspec.Struct, frozen=True):
    """A store's revision and its objects as (resource, namespace, name, revision, data), sorted by revision."""

    revision: int
    objects: tuple[tuple[GVR, str, str, int, bytes], ...]


class _Collection:
    """The objects of one resource by key, their sorted keys, and their log."""

    __slots__ = ("objects", "keys", "log", "listeners")

    def __init__(self, keep: int, floor: int) -> None:
        self.objects: dict[str, Stored] = {}
        self.keys: list[str] = []
        self.log = EventLog(keep, floor)
        self.listeners: list[Callable[[Event], None]] = []

    def put(self, stored: Stored) -> None:
        if stored.key not in self.objects:
            insort(self.keys, stored.key)
        self.objects[stored.key] = stored

    def remove(self, key: str) -> None:
        del self.objects[key], self.keys[bisect_left(self.keys, key)]

    def places(self, low: str, high: str | None) -> slice:
        """The part of ``keys`` from ``low`` up to and without ``high``."""
        return slice(bisect_left(self.keys, low), len(self.keys) if high is None else bisect_left(self.keys, high))


class Store:
    """See the module. ``keep``: events kept per resource."""

    def __init__(self, journal: Journal | None = None, *, keep: int = KEPT_EVENTS) -> None:
        self._keep = keep
        self._recent = Recent(KEPT_DOCUMENTS)
        self._collections: dict[GVR, _Collection] = {}
        self._journal = journal
        self.observers: list[Callable[[GVR, Event], None]] = []
        """Called with each write of any resource."""
        self.revision = 1
        self._start = 1
        if journal is not None:
            self._load(journal)

    # Snapshots

    def snapshot(self) -> "StoreContent":
        """All objects, for ``restore``."""
        kept = [(gvr, one) for gvr, c in self._collections.items() for one in c.objects.values()]
        objects = [(gvr, one.namespace, one.name, one.revision, one.data) for gvr, one in kept]
        return StoreContent(self.revision, tuple(sorted(objects, key=lambda each: each[3])))

    def restore(self, snapshot: "StoreContent") -> None:
        """Fill an empty store. Subscribers are called as for writes, but there is no history."""
        assert self.revision == 1 and self._journal is None
        for gvr, namespace, name, revision, data in snapshot.objects:
            stored = Stored(namespace, name, revision, data, self._recent)
            self._put(gvr, self._collection(gvr), "ADDED", stored, None)
        self.revision = snapshot.revision
        self.compact(snapshot.revision)

    # Reading

    def get(self, gvr: GVR, namespace: str, name: str) -> Stored | None:
        """The latest version of an object."""
        return self._collection(gvr).objects.get(object_key(namespace, name))

    def get_at(self, gvr: GVR, namespace: str, name: str, revision: int) -> Stored | None:
        """An object at a revision; its latest version if the history is gone."""
        collection, key = self._collection(gvr), object_key(namespace, name)
        found = collection.objects.get(key)
        if revision >= collection.log.floor:
            for event in reversed(collection.log.since(revision)):
                if event.stored.key == key:
                    found = event.previous
        return found

    def versions(self, gvr: GVR, namespace: str, name: str) -> Iterator[Stored]:
        """The versions of an object, and of earlier ones of its name, that are kept, the latest first. Do not write
        while iterating."""
        collection, key = self._collection(gvr), object_key(namespace, name)
        if (current := collection.objects.get(key)) is not None:
            yield current
        for event in reversed(collection.log.since(collection.log.floor)):
            if event.stored.key == key and event.previous is not None:
                yield event.previous

    def kept(self, gvr: GVR, revision: int) -> int:
        """A revision, or the first one after it since which the history of a resource is kept."""
        return max(revision, self._collection(gvr).log.floor)

    def list(self, gvr: GVR, namespace: str = "", *, at: int | None = None) -> list[Stored]:
        """The versions at a revision (None: the latest), sorted by key. Raises Compacted."""
        return list(self.scan(gvr, namespace, at=at))

    def scan(self, gvr: GVR, namespace: str = "", *, start: str = "", at: int | None = None) -> Iterator[Stored]:
        """Objects sorted by key, starting at key ``start``; ``at``: at a revision (None: the latest).

        Do not write while iterating. The first step raises Compacted if the history of the revision is gone.
        """
        collection = self._collection(gvr)
        objects = collection.objects
        low, high = _range(namespace, start)
        keys = collection.keys[collection.places(low, high)]
        past = self._past(collection, at, low, high)
        if not past:
            yield from map(objects.__getitem__, keys)
            return
        unchanged = (key for key in keys if key not in past)
        for key in heapq.merge(unchanged, sorted(_present(past))):  # a page does not sort them all
            found = past.get(key)
            yield objects[key] if found is None else found

    def count(self, gvr: GVR, namespace: str = "", *, start: str = "", at: int | None = None) -> int:
        """The number of objects, starting at a key; ``at``: at a revision (None: the latest). Raises Compacted."""
        collection, (low, high) = self._collection(gvr), _range(namespace, start)
        places, past = collection.places(low, high), self._past(collection, at, low, high)
        return int(places.stop - places.start) - len(past.keys() & collection.objects.keys()) + len(_present(past))

    def watch(self, gvr: GVR, namespace: str, since: int) -> Watcher:
        """A watcher of the writes after revision ``since``. Raises Compacted."""
        log = self._collection(gvr).log
        return Watcher(log, namespace, log.position_after(since))

    def subscribe(self, gvr: GVR, listener: Callable[[Event], None]) -> None:
        """Call ``listener`` with each later write, before the write returns. For caches inside the server."""
        self._collection(gvr).listeners.append(listener)

    def watchers(self) -> dict[GVR, int]:
        """The number of open watches by resource."""
        return {gvr: c.log.watchers for gvr, c in self._collections.items() if c.log.watchers}

    def sizes(self) -> dict[GVR, int]:
        """The number of objects by resource."""
        return {gvr: len(c.objects) for gvr, c in self._collections.items() if c.objects}

    # Writing. The store keeps ``doc`` and sets its resourceVersion: do not change it afterwards.

    def create(self, gvr: GVR, namespace: str, name: str, doc: Doc, check: Check = _accept) -> Stored:
        """Add an object. ``check``: see Check. Raises AlreadyExists, NotKept, and what ``check`` raises."""
        collection = self._collection(gvr)
        if object_key(namespace, name) in collection.objects:
            raise AlreadyExists(name)
        stored = self._version(namespace, name, doc)
        check(stored)
        stored.created = True
        return self._put(gvr, collection, "ADDED", stored, None)

    def update(  # noqa: PLR0913  # an address, a document and options
        self,
        gvr: GVR,
        namespace: str,
        name: str,
        doc: Doc,
        expected: int | None = None,
        *,
        always: bool = False,
        check: Check = _accept,
    ) -> Stored:
        """Replace an object; an equal one is only written with ``always``. ``check``: see Check. Raises NotFound,
        Conflict, NotKept, and what ``check`` raises."""
        collection = self._collection(gvr)
        current = self._current(collection, namespace, name, expected)
        metadata = _metadata(doc)
        metadata["resourceVersion"] = str(current.revision)
        if not always and doc == current.doc and same(doc, current.doc):
            return current
        stored = self._version(namespace, name, doc)
        check(stored)
        return self._put(gvr, collection, "MODIFIED", stored, current)

    def delete(self, gvr: GVR, namespace: str, name: str, *, expected: int | None = None) -> Stored:
        """Delete an object. Returns its last state with the deletion's revision. Raises NotFound, Conflict, NotKept."""
        collection = self._collection(gvr)
        current = self._current(collection, namespace, name, expected)
        last = self._version(namespace, name, current.copy())
        return self._put(gvr, collection, "DELETED", last, current)

    def compact(self, revision: int) -> None:
        """Drop the history up to a revision."""
        self._start = max(self._start, revision)
        for collection in self._collections.values():
            collection.log.compact(revision)

    def forget(self, gvr: GVR) -> None:
        """Drop the history and the subscribers of a resource without objects. Watches from now on start later."""
        collection = self._collections.get(gvr)
        if collection is not None and not collection.objects:
            del self._collections[gvr]
            self._start = max(self._start, self.revision)

    def close(self) -> None:
        """Close the journal. No write may follow."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    # atomic: no await
    def _put(
        self, gvr: GVR, collection: _Collection, type_: EventType, stored: Stored, previous: Stored | None
    ) -> Stored:
        deleted = type_ == "DELETED"
        if self._journal is not None:
            self._journal.write(gvr, stored, deleted)
        self.revision = stored.revision
        if deleted:
            collection.remove(stored.key)
        else:
            collection.put(stored)
        event = Event(type_, stored, previous)
        collection.log.append(event)
        for listener in collection.listeners:
            listener(event)
        for observer in self.observers:
            observer(gvr, event)
        return stored

    def _version(self, namespace: str, name: str, doc: Doc) -> Stored:
        revision = self.revision + 1
        _metadata(doc)["resourceVersion"] = str(revision)
        return Stored(namespace, name, revision, codec.encode(doc), self._recent, doc)

    def _current(self, collection: _Collection, namespace: str, name: str, expected: int | None) -> Stored:
        current = collection.objects.get(object_key(namespace, name))
        if current is None:
            raise NotFound(name)
        if expected is not None and expected != current.revision:
            raise Conflict(expected, current.revision)
        return current

    def _collection(self, gvr: GVR) -> _Collection:
        collection = self._collections.get(gvr)
        if collection is None:
            collection = self._collections[gvr] = _Collection(self._keep, self._start)
        return collection

    def _past(self, collection: _Collection, at: int | None, low: str, high: str | None) -> dict[str, Stored | None]:
        """The objects at a revision (None: absent) by key, for the keys with later changes. Raises Compacted."""
        past: dict[str, Stored | None] = {}
        if at is None or at >= self.revision:
            return past
        if at < collection.log.floor:
            raise Compacted(at, collection.log.floor)
        for event in reversed(collection.log.since(at)):
            key = event.stored.key
            if low <= key and (high is None or key < high):
                past[key] = event.previous
        return past

    def _load(self, journal: Journal) -> None:
        self.revision, objects = journal.load()
        self._start = self.revision
        for gvr, namespace, name, revision, data in objects:
            stored = Stored(namespace, name, revision, data, self._recent)
            self._collection(gvr).put(stored)


def _present(past: dict[str, Stored | None]) -> list[str]:
    return [key for key, stored in past.items() if stored is not None]


def _range(namespace: str, start: str) -> tuple[str, str | None]:
    if not namespace:
        return start, None
    return max(start, namespace + "/"), namespace + "0"  # "0" follows "/".


def _metadata(doc: Doc) -> Doc:
    metadata = doc["metadata"]
    assert isinstance(metadata, dict)
    return metadata
