"""The compiled policies or webhooks for each kind of write, cached until one of them changes."""

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, Protocol, TypeVar

from kcm_cli.api.resource import GVR
from kcm_cli.sandbox.apiserver.admission.dynamic.matching import Match, exempt
from kcm_cli.sandbox.apiserver.admission.dynamic.views import Versions, View
from kcm_cli.sandbox.apiserver.registry.catalog import Served
from kcm_cli.sandbox.apiserver.store import Event, Store, Stored
from kcm_cli.sandbox.apiserver.types import Attributes


class Compiled(Protocol):
    """A policy or a webhook."""

    @property
    def match(self) -> Match: ...


C = TypeVar("C", bound=Compiled)
T = TypeVar("T")


class Kept(Generic[T]):
    """What was compiled of each object, until it changes."""

    def __init__(self, make: Callable[[Stored], T]) -> None:
        self._make = make
        self._known: dict[str, tuple[int, T]] = {}

    def of(self, those: Iterable[Stored]) -> list[T]:
        """What is compiled of these objects of one kind, in order. Drops that of others."""
        before, self._known = self._known, {}
        for stored in those:
            known = before.get(stored.name)
            if known is None or known[0] != stored.revision:
                known = stored.revision, self._make(stored)
            self._known[stored.name] = known
        return [made for _, made in self._known.values()]


class Chosen(Generic[C]):
    """See the module. gvrs: the resources whose changes require compiling. reviews: whether reviews are exempt, too."""

    def __init__(
        self,
        store: Store,
        versions: Versions,
        gvrs: Iterable[GVR],
        compiled: Callable[[], Iterable[C]],
        *,
        reviews: bool,
    ) -> None:
        self._store, self._versions = store, versions
        self._compiled = compiled
        self._reviews = reviews
        self._all: list[C] | None = None
        self._of_kinds: dict[tuple[object, ...], list[tuple[C, Served]]] = {}
        for gvr in gvrs:
            store.subscribe(gvr, self._changed)
        versions.changed.append(self._of_kinds.clear)

    def concern(self, attrs: Attributes) -> bool:
        """Whether one may match writes of this kind and operation."""
        return bool(self._of(attrs))

    def matching(self, attrs: Attributes) -> Iterator[tuple[C, View]]:
        """Those that match a write, each at the time when it is next. Raises ApiError."""
        versions = self._versions.of(attrs)
        for one, served in self._of(attrs):
            if one.match.matches(attrs, versions, served, self._store):
                yield one, View(attrs, served, versions[0])

    def _of(self, attrs: Attributes) -> list[tuple[C, Served]]:
        """Those that may match a write of this kind and operation, each with the version that it requests."""
        if exempt(attrs.resource.gvr, reviews=self._reviews):
            return []
        if self._all is None:
            self._all = list(self._compiled())
            self._of_kinds.clear()
        if not self._all:
            return []
        key = (attrs.resource.gvr, attrs.operation, attrs.subresource)
        found = self._of_kinds.get(key)
        if found is None:
            versions = self._versions.of(attrs)
            chosen = ((one, one.match.choose(attrs, versions)) for one in self._all)
            found = self._of_kinds[key] = [(one, served) for one, served in chosen if served is not None]
        return found

    def _changed(self, event: Event) -> None:
        self._all = None
