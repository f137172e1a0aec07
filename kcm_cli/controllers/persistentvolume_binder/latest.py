"""A cache that is never behind our own writes.

What a binding writes comes back over the watch in its own time, and by parts. A sync that looked at the shared cache
in between would write it all again, and be refused. Here the newest version of an object counts, whether it came as
the answer to a write or over the watch.

upstream: pkg/controller/volume/persistentvolume/pv_controller_base.go#storeObjectUpdate
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from kcm_cli.machinery.meta import Object
from kcm_cli.runtime.informer import Informer
from kcm_cli.runtime.store import Store

T = TypeVar("T", bound=Object)


class Latest(Generic[T]):
    """The objects of an informer, with the answers to our writes. Each change calls ``on_change(old, new)``."""

    def __init__(
        self, informer: Informer[T], on_change: Callable[[T | None, T | None], None] = lambda old, new: None
    ) -> None:
        self.store: Store[T] = Store()
        self._on_change = on_change
        informer.listen(on_add=self._seen, on_update=lambda old, new: self._seen(new), on_delete=self._gone)

    def get(self, key: str) -> T | None:
        return self.store.get(key)

    def wrote(self, obj: T) -> None:
        """Note the server's answer to a write. The answer about an object deleted meanwhile restores nothing."""
        held = self.store.get(obj.key)
        if held is not None and held.uid == obj.uid:
            self._seen(obj)

    def _seen(self, obj: T) -> None:
        held = self.store.get(obj.key)
        if held is not None and held.uid == obj.uid and held.version > obj.version:
            return
        self._on_change(self.store.put(obj), obj)

    def _gone(self, obj: T) -> None:
        self._on_change(self.store.pop(obj.key), None)
