"""Follows every resource that can be deleted, as discovery names them.

Resources that another controller caches already are followed in its cache; of the others only what the graph needs
is held: names, owners, finalizers. Labels, annotations and content cost nothing.
"""

import logging
from collections.abc import Callable
from typing import Any

import msgspec

from kcm_cli.api.resource import GVR, Resource
from kcm_cli.component.clock import Clock
from kcm_cli.controllers.garbage_collector.graph import Identity
from kcm_cli.engine.context import ControllerContext
from kcm_cli.machinery import codec
from kcm_cli.machinery.meta import Object, ObjectMeta, OwnerReference, View
from kcm_cli.rest.client import Client
from kcm_cli.rest.discovery import discover
from kcm_cli.rest.errors import ApiError
from kcm_cli.rest.served import ServedResource
from kcm_cli.rest.transport import TransportError
from kcm_cli.runtime.informer import AnyInformer, Listener

log = logging.getLogger(__name__)

PERIOD_S = 30.0
VERBS = ("delete", "list", "watch")


class SlimMeta(View, frozen=True, gc=False):
    """What the graph needs of an object's metadata; the rest is not even decoded."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()


class SlimObject(Object, frozen=True, gc=False, kw_only=True):
    """An object reduced to SlimMeta."""

    metadata: SlimMeta = msgspec.field(default_factory=SlimMeta)  # type: ignore[assignment]  # fewer fields, same names


Observe = Callable[[Identity, ObjectMeta, ObjectMeta | None], None]
Gone = Callable[[Identity], None]


class Monitors:
    """One listener per resource; ``refresh`` follows discovery."""

    def __init__(self, context: ControllerContext, ignored: frozenset[tuple[str, str]], observe: Observe, gone: Gone):
        self._context = context
        self._client: Client = context.client
        self._clock: Clock = context.clock
        self._ignored = ignored
        self._observe = observe
        self._gone = gone
        self._followed: dict[GVR, tuple[AnyInformer, Listener[Any]]] = {}
        self._by_kind: dict[tuple[str, str], AnyInformer] = {}

    @property
    def synced(self) -> bool:
        """Whether all resources that are followed have been listed."""
        return bool(self._followed) and not self.missing()

    def missing(self) -> list[str]:
        """The resources that are followed and have not been listed yet."""
        return [str(gvr) for gvr, (informer, _) in self._followed.items() if not informer.synced.is_set()]

    def of_kind(self, api_version: str, kind: str) -> AnyInformer | None:
        """The cache of a kind's objects, if it is followed."""
        return self._by_kind.get((api_version, kind))

    async def refresh(self) -> bool:
        """Follow what is served now; whether discovery answered. Groups that failed keep their monitors."""
        try:
            found = await discover(self._client)
        except (ApiError, TransportError, codec.DecodeError) as error:
            log.warning("Discovery failed, monitors stay as they are", extra={"fields": {"err": str(error)}})
            return False
        deletable = [resource for resource in found.preferred() if resource.supports(*VERBS)]
        if not deletable:
            return False
        wanted = {resource.gvr: resource for resource in deletable if self._counts(resource)}
        for gvr in [gvr for gvr in self._followed if gvr not in wanted and gvr.group_version not in found.failed]:
            self._unfollow(gvr)
        for gvr, resource in wanted.items():
            if gvr not in self._followed:
                self._follow(resource)
        self._context.start_informers()
        return True

    def _counts(self, resource: ServedResource) -> bool:
        return (resource.gvr.group, resource.gvr.plural) not in self._ignored

    def _follow(self, served: ServedResource) -> None:
        slim = Resource(served.gvr, served.kind, SlimObject, served.namespaced)
        informer = self._context.informers.metadata(slim)
        api_version, kind = served.gvr.group_version, served.kind

        def identity(obj: Object) -> Identity:
            meta = obj.metadata
            return Identity(kind, api_version, meta.namespace, meta.name, meta.uid)

        listener = informer.listen(
            on_add=lambda obj: self._observe(identity(obj), obj.metadata, None),
            on_update=lambda old, new: self._observe(identity(new), new.metadata, old.metadata),
            on_delete=lambda obj: self._gone(identity(obj)),
        )
        self._followed[served.gvr] = (informer, listener)
        self._by_kind[(api_version, kind)] = informer

    def _unfollow(self, gvr: GVR) -> None:
        informer, listener = self._followed.pop(gvr)
        informer.unlisten(listener)
        self._by_kind = {kind: known for kind, known in self._by_kind.items() if known is not informer}
        log.info("Resource is no longer served", extra={"fields": {"resource": str(gvr)}})
