"""Status updates by the controllers inside the API server."""

from kcm_cli.api.resource import GVR
from kcm_cli.component.clock import Clock
from kcm_cli.sandbox.apiserver.apply.patching import Applied, Patching
from kcm_cli.sandbox.apiserver.registry.catalog import Catalog
from kcm_cli.sandbox.apiserver.registry.core import Core
from kcm_cli.sandbox.apiserver.store import Store, Stored
from kcm_cli.sandbox.apiserver.types import Tree

_MANAGER = "kube-apiserver"


def apply_status(core: Core, gvr: GVR, current: Stored, status: Tree, manager: str) -> None:
    """Apply fields of the status of a cluster-scoped object as a field manager."""
    served = core.catalog.by_gvr(gvr)
    if served is None:
        return
    wanted: Tree = {"apiVersion": served.info.api_version, "kind": served.info.kind, "metadata": {"name": current.name}}
    applied = Applied({**wanted, "status": status}, manager, force=True)
    doc = core.patching.apply(served.info, "status", current.copy(), applied, core.clock.now())
    core.store.update(gvr, "", current.name, doc)


class OwnStatus:
    """Updates ``.../status`` as the field manager kube-apiserver."""

    def __init__(self, store: Store, catalog: Catalog, patching: Patching, clock: Clock) -> None:
        self._store = store
        self._catalog = catalog
        self._patching = patching
        self._clock = clock

    def update(self, gvr: GVR, current: Stored, new: Tree) -> None:
        """Write a changed copy of an object. Raises StoreError if the stored object has changed."""
        served = self._catalog.by_gvr(gvr)
        assert served is not None
        self._patching.track_update(
            self._patching.place(served.info, "status"), current.doc, new, _MANAGER, self._clock.now()
        )
        self._store.update(gvr, current.namespace, current.name, new, current.revision)
