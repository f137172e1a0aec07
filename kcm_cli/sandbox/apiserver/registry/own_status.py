"""Status updates by the controllers inside the API server."""

from kcm_cli.api.resource import GVR
from kcm_cli.component.clock import Clock
from kcm_cli.sandbox.apiserver.apply.patching import Patching
from kcm_cli.sandbox.apiserver.registry.catalog import Catalog
from kcm_cli.sandbox.apiserver.store import Store, Stored
from kcm_cli.sandbox.apiserver.types import Tree

_MANAGER = "kube-apiserver"


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
        self._patching.track_update(served.info, "status", current.doc, new, _MANAGER, self._clock.now())
        self._store.update(gvr, current.namespace, current.name, new, current.revision)
