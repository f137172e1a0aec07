"""Watches every deletable resource that discovery lists.

A resource that another controller caches is followed in that cache. For others only the fields that the graph needs are
cached: names, owners and finalizers.
"""

import logging
from collections.abc import Callable
from enum import Enum
from typing import Any

from kcm_cli.api.resource import GVR, Resource, Undecodable
from kcm_cli.component.logs import V2
from kcm_cli.controllers.garbage_collector.changes import Change, Deleted, Listed, ObjectKind, Observed
from kcm_cli.engine.context import ControllerContext
from kcm_cli.machinery.meta import Object, PartialObject, SlimObject
from kcm_cli.rest.served_resources import Discovery, ServedResource
from kcm_cli.runtime.informer import AnyInformer, Listener
from kcm_cli.runtime.turns import Turns

log = logging.getLogger(__name__)

VERBS = ("delete", "list", "watch")


class DiscoveryResult(Enum):
    """The result of a discovery."""

    FAILED = "failed"
    SAME = "same"
    CHANGED = "changed"


class Monitors:
    """One listener for each resource. upstream: the monitors of GraphBuilder."""

    def __init__(
        self, context: ControllerContext, ignored: frozenset[tuple[str, str]], put: Callable[[Change], None]
    ) -> None:
        self._context = context
        self._ignored = ignored
        self._put = put
        self._listening: dict[GVR, AnyInformer] = {}
        self._listeners: dict[GVR, Listener[Any]] = {}
        self._followed: dict[GVR, ServedResource] = {}
        self._by_kind: dict[tuple[str, str], AnyInformer] = {}

    @property
    def synced(self) -> bool:
        """Whether all watched resources have synced."""
        return bool(self._followed) and not self.missing()

    def missing(self) -> list[str]:
        """The watched resources that have not synced yet."""
        return [str(gvr) for gvr in self._followed if not self._listening[gvr].synced.is_set()]

    def of_kind(self, api_version: str, kind: str) -> AnyInformer | None:
        """The cache of a kind, if it is watched."""
        return self._by_kind.get((api_version, kind))

    def synced_kinds(self) -> set[tuple[str, str]]:
        """The groups and kinds that are watched and have synced."""
        followed = self._followed.items()
        return {(gvr.group, one.kind) for gvr, one in followed if self._listening[gvr].synced.is_set()}

    async def refresh(self, found: Discovery) -> DiscoveryResult:
        """Watch the resources that are served. Groups whose discovery failed keep the monitors that have synced.

        It awaits: the next call is to wait for the end of this one.
        """
        if found.failed:
            log.info("failed to discover some groups", extra={"fields": {"groups": str(found.failed)}})
        deletable = [resource for resource in found.preferred() if resource.supports(*VERBS)]
        if not deletable:
            return DiscoveryResult.FAILED
        wanted = {resource.gvr: resource for resource in deletable if self._counts(resource)}
        for gvr, resource in self._followed.items():
            if not found.complete(gvr) and self._listening[gvr].synced.is_set():
                wanted.setdefault(gvr, resource)
        added, removed = wanted.keys() - self._followed.keys(), self._followed.keys() - wanted.keys()
        if not added and not removed:
            await self._release()
            return DiscoveryResult.SAME
        diff = f"added: {sorted(map(str, added))}, removed: {sorted(map(str, removed))}"
        log.log(V2, "syncing garbage collector with updated resources from discovery", extra={"fields": {"diff": diff}})
        for gvr, resource in wanted.items():
            if gvr in added:
                self._listen(resource)
        self._followed = wanted
        self._by_kind = {(gvr.group_version, served.kind): self._listening[gvr] for gvr, served in wanted.items()}
        self._context.start_informers()
        await self._release()
        return DiscoveryResult.CHANGED

    def _counts(self, resource: ServedResource) -> bool:
        return (resource.gvr.group, resource.gvr.plural) not in self._ignored

    def _listen(self, served: ServedResource) -> None:
        """Start to watch a resource."""
        if served.gvr in self._listening:
            return
        slim = Resource(served.gvr, served.kind, SlimObject, served.namespaced)
        informer = self._listening[served.gvr] = self._context.informers.metadata(slim)
        kind, put, listening = ObjectKind(served.gvr.group_version, served.kind), self._put, False
        undecoded: set[str] = set()

        def added(obj: Object) -> None:
            undecoded.discard(obj.uid)
            if listening:
                put(Observed(kind, obj, None))

        def updated(old: Object, new: Object) -> None:
            before, now = old.metadata, new.metadata
            if (
                (undecoded and new.uid in undecoded)
                or before.owner_references != now.owner_references
                or now.deletion_timestamp is not None
                or before.deletion_timestamp is not None
            ):
                undecoded.discard(new.uid)
                put(Observed(kind, new, before))

        def deleted(obj: Object) -> None:
            undecoded.discard(obj.uid)
            put(Deleted(kind, obj))

        def unknown(obj: Undecodable) -> None:
            """An object that cannot be decoded still is a dependent: owners go on waiting for it."""
            held = informer.store.get(obj.key)
            if obj.metadata.uid:
                undecoded.add(obj.metadata.uid)
                put(Observed(kind, _partial(obj), held.metadata if held is not None else None))

        self._listeners[served.gvr] = informer.listen(
            on_add=added,
            on_update=updated,
            on_delete=deleted,
            on_unknown=unknown,
            on_unknown_delete=lambda obj: deleted(_partial(obj)),
        )
        listening = True
        if held := informer.store.list():
            put(Listed(kind, held))

    async def _release(self) -> None:
        """Stop watching resources that are not wanted any more, once nothing depends on them.

        A resource that is no longer served keeps its remaining nodes, as upstream: they are removed when it is served
        again and its list does not have the objects. A resource that is watched in another version keeps the old watch
        until the new one has synced and is no older. Two caches are compared in one turn of the loop, since both go on,
        and each pair in a turn of its own.
        """
        now = {(gvr.group, gvr.plural): self._listening[gvr] for gvr in self._followed}
        turns = Turns.of_loop()
        for gvr in sorted(self._listening.keys() - self._followed.keys(), key=str):
            await turns.pause()
            informer, other = self._listening[gvr], now.get((gvr.group, gvr.plural))
            if other is not None:
                if not other.synced.is_set():
                    continue
                lacking = _lacking(informer, other)
                if any(other.progress.behind(obj.version) for obj in lacking):
                    continue
                kind = ObjectKind(gvr.group_version, informer.resource.kind)
                for obj in lacking:
                    self._put(Deleted(kind, obj))
            elif len(informer.store) or informer.store.unknown():
                continue
            del self._listening[gvr]
            self._context.informers.release(informer, self._listeners.pop(gvr))


def _lacking(informer: AnyInformer, other: AnyInformer) -> list[Object]:
    """The objects of one version's cache that another version's cache does not have: those that were deleted, and those
    that are newer than that cache."""
    unknown, found = other.store.unknown(), list[Object]()
    for obj in (*informer.store.list(), *map(_partial, informer.store.unknown().values())):
        held = other.store.get(obj.key)
        if obj.key not in unknown and (held is None or held.uid != obj.uid):
            found.append(obj)
    return found


def _partial(obj: Undecodable) -> PartialObject:
    """The metadata of an object that cannot be decoded."""
    return PartialObject(metadata=obj.metadata)
