"""Maps the change of an owned object to the keys of its owners.

An object with a controller queues that controller; an orphan queues every owner whose selector matches it. Expected
deletions are observed here, already when the object gets its deletion timestamp.

upstream: pkg/controller/replicaset/replica_set.go#addPod, updatePod, deletePod,
pkg/controller/daemon/daemon_controller.go#addHistory
"""

import logging
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from kcm_cli.component.logs import V4
from kcm_cli.machinery.kref import kref
from kcm_cli.machinery.labels import Selector, from_label_selector
from kcm_cli.machinery.meta import Object, OwnerReference, controller_of
from kcm_cli.runtime.expectations import Expectations
from kcm_cli.runtime.informer import Informer
from kcm_cli.runtime.label_indexes import SelectorIndex
from kcm_cli.runtime.store import Store

log = logging.getLogger(__name__)

Owner = TypeVar("Owner", bound=Object)
Child = TypeVar("Child", bound=Object)


def tell_queued(controller: str, kind: str, change: str, obj: str, key: str) -> None:
    """Log, at verbosity 4, that a change of an object (its key) has queued a key."""
    fields = {"logger": controller, "change": change, "kind": kind, "object": kref(obj), "key": key}
    log.log(V4, "Change queues key", extra={"fields": fields})


def selector_of(owner: Any) -> Selector:
    """The compiled selector of an owner's spec. One without a selector matches nothing. Raises FormatError."""
    return from_label_selector(getattr(owner.spec, "selector", None))


def living_owner(kind: str, owners: Store[Owner], child: Object) -> Owner | None:
    """The owner of this kind that controls a child, by name and uid. None for an owner that was recreated."""
    return _resolve(kind, owners, child, controller_of(child))


def _resolve(kind: str, owners: Store[Owner], child: Object, ref: OwnerReference | None) -> Owner | None:
    if ref is None or ref.kind != kind:
        return None
    owner = owners.get(f"{child.namespace}/{ref.name}")
    return owner if owner is not None and owner.uid == ref.uid else None


class Dependents(Generic[Owner, Child]):
    """Listens to the children of one kind of owner and queues the owners' keys.

    ``selector``: the selector of an owner. ``changed(owner, old, new)`` is called for each update of an owned child, to
    requeue the owner later (minReadySeconds). ``matters(old, new)``: whether an update of an owned child queues the
    owner; not asked where the labels or the controller have changed, nor by a resync, which always does.
    ``overdue(key)``: whether the owner waits for a change that does not come, so that any update queues it. Without
    ``expectations`` a new child that has an owner queues nothing.
    ``about``: the controller and the children's kind, for logs.
    """

    def __init__(  # noqa: PLR0913  # two kinds, a queue, and options
        self,
        kind: str,
        owners: Store[Owner],
        enqueue: Callable[[str], None],
        *,
        about: tuple[str, str] = ("", ""),
        selector: Callable[[Owner], Selector],
        expectations: Expectations | None = None,
        changed: Callable[[Owner, Child, Child], None] | None = None,
        matters: Callable[[Child, Child], bool] = lambda old, new: True,
        overdue: Callable[[str], bool] = lambda key: False,
    ) -> None:
        self._kind = kind
        self._owners = owners
        self._enqueue = enqueue
        self._about = about
        self._selector = selector
        self._selecting = SelectorIndex.of(owners, selector)
        self._expectations = expectations
        self._changed = changed
        self._matters = matters
        self._overdue = overdue

    def listen(self, children: Informer[Child]) -> None:
        children.listen(on_add=self._added, on_update=self._updated, on_delete=self._deleted)

    def _added(self, child: Child) -> None:
        if child.deleting:
            self._deleted(child)
            return
        ref = controller_of(child)
        if ref is None:
            self._orphan(child)
            return
        if ref.kind != self._kind:  # a pod's change comes to every kind that owns pods
            return
        owner = _resolve(self._kind, self._owners, child, ref)
        if owner is not None and self._expectations is not None:
            self._expectations.creation_observed(owner.key)
            self._queue(owner, child, "added")

    def _updated(self, old: Child, new: Child) -> None:
        relabelled = old.metadata.labels != new.metadata.labels
        before, after = controller_of(old), controller_of(new)
        moved = before != after
        if new.deleting:
            self._deleted(new)
            if relabelled or moved:
                self._deleted(old)
            return
        if moved and before is not None:
            previous = _resolve(self._kind, self._owners, old, before)
            if previous is not None:
                self._queue(previous, new, "updated")
        if after is not None:
            owner = _resolve(self._kind, self._owners, new, after)
            if owner is not None:
                if relabelled or moved or old is new or self._matters(old, new) or self._overdue(owner.key):
                    self._queue(owner, new, "updated")
                if self._changed is not None:
                    self._changed(owner, old, new)
        elif relabelled or moved:
            self._orphan(new)

    def _deleted(self, child: Child) -> None:
        owner = _resolve(self._kind, self._owners, child, controller_of(child))
        if owner is not None:
            if self._expectations is not None:
                self._expectations.deletion_observed(owner.key, child.key)
            self._queue(owner, child, "deleted")

    def _queue(self, owner: Owner, child: Child, change: str) -> None:
        if log.isEnabledFor(V4):
            tell_queued(*self._about, change, child.key, owner.key)
        self._enqueue(owner.key)

    def _orphan(self, child: Child) -> None:
        """Queue the owners that may adopt a child. An empty selector adopts nothing."""
        if child.labels:
            for owner in self._selecting.selecting(child.namespace, child.labels):
                if not self._selector(owner).empty:
                    self._enqueue(owner.key)
