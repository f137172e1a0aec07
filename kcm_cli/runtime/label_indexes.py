"""Two indexes of a store by labels: which objects does a selector select, and whose selectors select these labels?

Each is one per store, whoever asks: ``LabelIndex.of(store)``, ``SelectorIndex.of(store, selector_of)``.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.labels import NOTHING, Selector
from kcm_cli.machinery.meta import Object
from kcm_cli.runtime.store import NAMESPACE, Store
from kcm_cli.runtime.turns import Turns

T = TypeVar("T", bound=Object)
Keys = tuple[str, ...]

MOST_KEYS = 8
"""The label keys that are indexed for a namespace. Its tenant chooses them, and each costs memory for each object."""
FEW = 32
"""So many objects are compared with a selector sooner than another key is indexed for them."""
_LABELS, _SELECTORS = "labels", "selectors"


class LabelIndex(Generic[T]):
    """The objects that a selector selects.

    The keys of labels are indexed that selectors ask for, by namespace, from the first question on: most labels are in
    no selector. An object is filed under each indexed key that it has, so those under one pair of a selector are a
    superset of what it selects, whichever keys are indexed: each is compared with the whole selector.
    """

    def __init__(self, store: Store[T]) -> None:
        """Use ``of``."""
        self._store = store
        self._keys: dict[str, list[str]] = {}
        self._growing: dict[str, str] = {}
        """The key for which the objects of a namespace are being filed: a change files them under it already."""
        self._filing: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """The lock of a namespace for ``_growing``, as long as someone holds it or waits for it."""
        store.add_index(_LABELS, self._filed)

    @classmethod
    def of(cls, store: Store[T]) -> "LabelIndex[T]":
        """The index of a store."""
        found: LabelIndex[T] = store.companion(_LABELS, lambda: cls(store))
        return found

    async def prepare(self, namespace: str, selector: Selector) -> None:
        """Index in turns of the loop what ``selected`` would index at once, which takes 2.5 µs for each object of the
        namespace. May be cancelled."""
        pairs = selector.exact_labels
        if not selector.selectable or not self._wanted(namespace, pairs):
            return
        lock = self._filing.setdefault(namespace, asyncio.Lock())
        async with lock:
            while key := self._wanted(namespace, pairs):
                await self._grow(namespace, key)

    async def _grow(self, namespace: str, key: str) -> None:
        self._growing[namespace] = key
        try:
            turns = Turns.of_loop()
            for _ in self._store.filed_again(_LABELS, namespace):
                await turns.step()
            # it is not growing any more if it was indexed at once, or the namespace was empty, meanwhile
            if namespace in self._growing and len(self._keys.get(namespace, ())) < MOST_KEYS:
                self._indexed(namespace, key)
        finally:
            if self._growing.pop(namespace, ""):
                self._store.forget(_LABELS, _pair(namespace, key, ""))

    def selected(self, namespace: str, selector: Selector) -> list[T]:
        """The objects of a namespace that a selector selects."""
        if not selector.selectable:
            return []
        return [obj for obj in self._candidates(namespace, selector.exact_labels) if selector.matches(obj.labels)]

    def _candidates(self, namespace: str, pairs: Sequence[tuple[str, str]]) -> list[T]:
        """The objects under the rarest of some pairs of which an object must have all."""
        store = self._store
        while key := self._wanted(namespace, pairs):
            self._indexed(namespace, key)
            for _ in store.filed_again(_LABELS, namespace):
                pass
        known = self._keys.get(namespace, ())
        filed = [_pair(namespace, key, value) for key, value in pairs if key in known]
        rarest = min(filed, key=lambda value: store.count(_LABELS, value), default="")
        return store.by_index(_LABELS, rarest) if rarest else store.list(namespace)

    def _wanted(self, namespace: str, pairs: Sequence[tuple[str, str]]) -> str:
        """The next key to index for some pairs; empty if few objects are left to compare."""
        store, known = self._store, self._keys.get(namespace, ())
        if len(known) >= MOST_KEYS or store.count(NAMESPACE, namespace) <= FEW:
            return ""
        new = ""
        for key, value in pairs:
            if key not in known:
                new = new or key
            elif store.count(_LABELS, _pair(namespace, key, value)) <= FEW:
                return ""
        return new

    def _indexed(self, namespace: str, key: str) -> None:
        self._keys.setdefault(namespace, []).append(key)
        if self._growing.get(namespace) == key:
            del self._growing[namespace]

    def _filed(self, obj: T) -> Iterator[str]:
        """The index function. At the end of a namespace its keys are forgotten: the store has no object of it then.

        NAMESPACE, the first index of each store, is changed before this one: so its count has the first object of a
        namespace when that is filed here, and is 0 when the last one is taken out of here.
        """
        namespace = obj.namespace
        keys, growing = self._keys.get(namespace, ()), self._growing.get(namespace)
        if not keys and growing is None:
            return
        labels = obj.labels
        for key in keys if growing is None else (*keys, growing):
            if (value := labels.get(key)) is not None:
                yield _pair(namespace, key, value)
        if not self._store.count(NAMESPACE, namespace):
            self._keys.pop(namespace, None)
            self._growing.pop(namespace, None)


class SelectorIndex(Generic[T]):
    """The objects whose selectors select given labels, such as the owners that may adopt an orphan.

    An object is filed under all labels that its selector wants with one value, so a question needs one look for each
    set of label keys that selectors of the namespace have, which are few. A set that no selector has any more costs a
    look that finds nothing; there are never more than twice as many sets as objects.

    Large selectors are compiled once for each version of an object. Anyone may make some of a megabyte, which take
    30 ms each: a pod that none of them selects is compared with all.
    """

    def __init__(self, store: Store[T], selector_of: Callable[[T], Selector]) -> None:
        """Use ``of``."""
        self._store = store
        self._selector_of = selector_of
        self._sets: dict[str, dict[Keys, None]] = {}
        store.add_index(_SELECTORS, self._filed)

    @classmethod
    def of(cls, store: Store[T], selector_of: Callable[[T], Selector]) -> "SelectorIndex[T]":
        """The index of a store. ``selector_of``: the selector of an object; an object for which it raises FormatError
        selects nothing. It depends on nothing but the object, and is the same for all who ask."""
        found: SelectorIndex[T] = store.companion(_SELECTORS, lambda: cls(store, selector_of))
        return found

    def selecting(self, namespace: str, labels: Mapping[str, str]) -> list[T]:
        """The objects of a namespace whose selectors match the labels; an empty selector matches all."""
        found: list[T] = []
        for keys in tuple(self._sets.get(namespace, ())):
            if len(keys) > len(labels):
                continue
            pairs = [(key, labels[key]) for key in keys if key in labels]
            if len(pairs) == len(keys):
                for obj in self._store.by_index(_SELECTORS, _all_pairs(namespace, pairs)):
                    if self._selector(obj).matches(labels):
                        found.append(obj)
        return found

    def _selector(self, obj: T) -> Selector:
        try:
            return self._selector_of(obj)
        except FormatError:
            return NOTHING

    def _filed(self, obj: T) -> tuple[str, ...]:
        """The index function. At the end of a namespace its sets are forgotten: the store has no object of it then."""
        namespace, selector = obj.namespace, self._selector(obj)
        count = self._store.count(NAMESPACE, namespace)
        pairs = selector.exact_labels
        if not count:
            self._sets.pop(namespace, None)
        elif selector.selectable:
            sets = self._sets.setdefault(namespace, {})
            sets[_keys(pairs)] = None
            if len(sets) > 2 * count + FEW:
                now = (self._selector(one) for one in self._store.list(namespace))
                self._sets[namespace] = {_keys(one.exact_labels): None for one in now if one.selectable}
        return (_all_pairs(namespace, pairs),) if selector.selectable else ()


def _keys(pairs: Iterable[tuple[str, str]]) -> Keys:
    return tuple(key for key, _ in pairs)


def _pair(namespace: str, key: str, value: str) -> str:
    return f"{namespace}/{key}={value}"


def _all_pairs(namespace: str, pairs: Iterable[tuple[str, str]]) -> str:
    return f"{namespace}/{','.join([f'{key}={value}' for key, value in pairs])}"
