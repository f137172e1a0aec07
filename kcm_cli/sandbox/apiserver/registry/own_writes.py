"""Writes of the server itself, without requests: the only writer of what it keeps."""

from collections.abc import Callable
from random import Random

from kcm_cli.api.resource import GVR
from kcm_cli.component.clock import Clock
from kcm_cli.machinery.times import format_time
from kcm_cli.sandbox.apiserver.apply.patching import Applied, Patching
from kcm_cli.sandbox.apiserver.registry import objects
from kcm_cli.sandbox.apiserver.registry.catalog import Catalog
from kcm_cli.sandbox.apiserver.store import Store, Stored
from kcm_cli.sandbox.apiserver.strategy import Context, Strategy
from kcm_cli.sandbox.apiserver.types import ResourceInfo, Tree

MANAGER = "kube-apiserver"


class OwnWrites:
    """Writes without admission and validation. Nothing awaits, so that what was read before is still current.

    rules: the strategy of a built-in kind. All methods raise StoreError if the stored object has changed, NotKept if
    the journal fails.
    """

    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        patching: Patching,
        rules: Callable[[ResourceInfo], Strategy],
        clock: Clock,
        rng: Random,
    ) -> None:
        self._store, self._catalog, self._patching = store, catalog, patching
        self._rules, self._clock, self._random = rules, clock, rng

    def create(self, gvr: GVR, doc: Tree) -> None:
        """Create a cluster-scoped object with system metadata, managedFields, and its kind's preparation."""
        info, now = self._catalog.info(gvr), self._clock.now()
        self._patching.track((info, ""), None, doc, MANAGER, now)
        objects.fill_system_fields(doc["metadata"], self._random, now)
        self._rules(info).prepare_create(doc, Context(format_time(now)))
        self._store.create(gvr, "", doc["metadata"]["name"], objects.ordered(info, doc))

    def update(self, gvr: GVR, current: Stored, doc: Tree, manager: str = MANAGER) -> None:
        """Update an object to ``doc``, a changed copy, with managedFields and its kind's preparation (generation)."""
        info, now, old = self._catalog.info(gvr), self._clock.now(), current.doc
        self._patching.track((info, ""), old, doc, manager, now)
        self._rules(info).prepare_update(doc, old, Context(format_time(now)))
        self._store.update(gvr, current.namespace, current.name, objects.ordered(info, doc), current.revision)

    def update_status(self, gvr: GVR, current: Stored, doc: Tree) -> None:
        """Update the status of an object to that of ``doc``, a changed copy."""
        self._patching.track((self._catalog.info(gvr), "status"), current.doc, doc, MANAGER, self._clock.now())
        self._store.update(gvr, current.namespace, current.name, doc, current.revision)

    def apply_status(self, gvr: GVR, current: Stored, status: Tree, manager: str) -> None:
        """Apply fields of the status of a cluster-scoped object as a field manager."""
        info = self._catalog.info(gvr)
        wanted: Tree = {"apiVersion": info.api_version, "kind": info.kind, "metadata": {"name": current.name}}
        applied = Applied({**wanted, "status": status}, manager, force=True)
        doc = self._patching.apply(info, "status", current.copy(), applied, self._clock.now())
        self._store.update(gvr, "", current.name, doc)

    def replace(self, gvr: GVR, current: Stored, doc: Tree) -> None:
        """Store ``doc`` as it is, for changes that have no manager: of finalizers and deletionTimestamp."""
        self._store.update(gvr, current.namespace, current.name, doc, current.revision)

    def delete(self, gvr: GVR, current: Stored) -> None:
        """Delete an object, regardless of finalizers."""
        self._store.delete(gvr, current.namespace, current.name, expected=current.revision)

    def retire(self, gvr: GVR, current: Stored) -> None:
        """Delete an object, or mark it as being deleted, if it has finalizers."""
        doc: Tree = current.doc
        if not doc["metadata"].get("finalizers"):
            self.delete(gvr, current)
        elif not doc["metadata"].get("deletionTimestamp"):
            fresh: Tree = current.copy()
            meta: Tree = fresh["metadata"]
            meta |= {"deletionTimestamp": format_time(self._clock.now()), "deletionGracePeriodSeconds": 0}
            if meta.get("generation"):
                meta["generation"] += 1
            self.replace(gvr, current, fresh)
