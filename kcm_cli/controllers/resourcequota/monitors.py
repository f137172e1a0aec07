"""Watches the kinds that quotas limit.

Measured kinds are cached with the fields that their measure needs, and summed up in a ledger. Kinds that are only
counted are cached as metadata. A kind is watched from the first quota that limits it.

upstream: pkg/controller/resourcequota/resource_quota_monitor.go
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS, PODS, SERVICES
from kcm_cli.api.devices import DEVICE_CLASSES, RESOURCE_CLAIMS, DeviceClass
from kcm_cli.api.resource import Resource
from kcm_cli.controllers.resourcequota import plan
from kcm_cli.controllers.resourcequota.ledger import JUST_AFTER_S, Ledger, Lookups
from kcm_cli.controllers.resourcequota.plan import Features, GroupResource
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.definitions import mapper, name_of
from kcm_cli.machinery.meta import Object, ObjectMeta
from kcm_cli.planning.pod_resources import Amounts
from kcm_cli.planning.quota.devices import BY_POD, CLAIM_KIND, DeviceClasses, by_pod, device_classes
from kcm_cli.planning.quota.scopes import Requirement
from kcm_cli.rest.mapper import PACE_S, NoMatch
from kcm_cli.rest.served_resources import ServedResource
from kcm_cli.rest.transport import RequestError
from kcm_cli.runtime.informer import AnyInformer, Informer, Listener
from kcm_cli.runtime.store import NAMESPACE
from kcm_cli.runtime.turns import Turns

_MEASURED: dict[GroupResource, Resource[Any]] = {
    plan.POD_KIND: PODS,
    plan.SERVICES_KIND: SERVICES,
    plan.CLAIMS_KIND: PERSISTENT_VOLUME_CLAIMS,
    CLAIM_KIND: RESOURCE_CLAIMS,
}
_CLASS_KIND: GroupResource = (DEVICE_CLASSES.gvr.group, DEVICE_CLASSES.plural)
_VERBS = ("create", "list", "watch", "delete")
"""The verbs that a kind must support to be counted."""


class Monitors:
    """The watched kinds. upstream: QuotaMonitor.

    released(kind, metadata): called when usage may have decreased, with that of the object. appeared(namespace): called
    for each new object. ending(kind, namespace, seconds): called when usage may decrease after so many seconds.
    """

    def __init__(
        self,
        context: ControllerContext,
        features: Features,
        released: Callable[[GroupResource, ObjectMeta], None],
        appeared: Callable[[str], None],
        ending: Callable[[GroupResource, str, float], None],
    ) -> None:
        self._context, self._features = context, features
        self._mapper = mapper(context)
        self._released = released
        self._appeared = appeared
        self._ending = ending
        self._followed: dict[GroupResource, AnyInformer] = {}
        self._counting: dict[GroupResource, Listener[Any]] = {}
        """The listeners of kinds that are only counted; without one, such a kind has ceased to be served."""
        self._since: dict[GroupResource, float] = {}
        self._asked: set[GroupResource] = set()
        self._missing: set[GroupResource] = set()
        """Kinds that a quota names and that are not served."""
        self._classes: Informer[DeviceClass] | None = None
        self._known_classes: DeviceClasses | None = DeviceClasses()
        """The device classes as of the last use; None after a change."""
        lookups = Lookups(self._find, self._keys, self._claims_of, lambda: self.classes, context.clock.now)
        self._ledger = Ledger(lookups, features)

    @property
    def classes(self) -> DeviceClasses:
        """The device classes in the cache."""
        if self._known_classes is None:
            self._known_classes = device_classes(self._classes.store if self._classes is not None else ())
        return self._known_classes

    async def follow_classes(self) -> bool:
        """Watch device classes. Returns whether they have synced, or are not needed."""
        if not self._features.extended_resources:
            return True
        if self._classes is None:
            if await self._served(_CLASS_KIND) is None:
                return True
            if self._classes is None:
                self._classes = self._context.informers.get(DEVICE_CLASSES)
                self._classes.listen(
                    on_add=self._class_changed, on_update=self._class_updated, on_delete=self._class_changed
                )
                self._context.start_informers()
        return self._classes.synced.is_set()

    async def follow(self, kinds: Iterable[GroupResource]) -> dict[GroupResource, float]:
        """Watch these kinds. Returns those that have not synced yet, with the seconds since their start. Kinds that are
        not served are skipped."""
        now = self._context.clock.monotonic()
        kinds = set(kinds)
        self._asked |= kinds
        for kind in kinds:
            if kind not in self._followed or await self._is_moved(kind):
                await self._follow(kind, now)
        self._context.start_informers()
        listing = [kind for kind in kinds if kind in self._followed and not self._followed[kind].synced.is_set()]
        return {kind: now - self._since[kind] for kind in listing}

    def awaits(self, definitions: set[str]) -> bool:
        """Whether a quota names a kind with one of these definitions that is not served yet."""
        return any(name_of(*kind) in definitions for kind in self._missing)

    async def refresh(self) -> set[GroupResource]:
        """The kinds that have started being served, and those whose watched version has stopped being served. Raises
        RequestError."""
        if not self._missing and not self._counting:
            return set()
        found = await self._mapper.discovery(younger_than_s=PACE_S)
        gvrs = {resource.gvr for resource in found.all()}
        served = self._missing & {(gvr.group, gvr.plural) for gvr in gvrs}
        self._missing -= served
        followed = {kind: self._followed[kind].resource.gvr for kind in self._counting}
        left = {kind for kind, gvr in followed.items() if gvr not in gvrs and found.complete(gvr)}
        return served | left

    async def measure(self, kinds: Iterable[GroupResource], namespace: str) -> None:
        """Measure the objects of these kinds. ``used``, called without an await in between, then equals a recount."""
        followed = [kind for kind in kinds if kind in self._followed]
        for kind in followed:
            self._ledger.keep(kind, namespace)
        await self._ledger.settle(followed, namespace)

    def due_s(self, kinds: Iterable[GroupResource], namespace: str) -> float | None:
        """Seconds until the usage of measured kinds may decrease without a change; None if that is not awaited."""
        return self._ledger.due_s(kinds, namespace)

    def used(self, kind: GroupResource, namespace: str, asked: tuple[Requirement, ...]) -> Amounts | None:
        """The usage of a measured kind; None if it is not served, or not measured."""
        return self._ledger.used(kind, namespace, asked) if self._ledger.keeps(kind, namespace) else None

    def count(self, kind: GroupResource, namespace: str) -> int | None:
        """The number of objects, including those that cannot be decoded; None for a kind that is not served."""
        informer = self._followed.get(kind)
        return informer.store.count(NAMESPACE, namespace) + self._unseen(kind, namespace) if informer else None

    def unmeasured(self, kinds: Iterable[GroupResource], namespace: str) -> set[GroupResource]:
        """The kinds with objects of which no version can be decoded, so that their usage is unknown."""
        return {kind for kind in kinds if self._unseen(kind, namespace)}

    def _unseen(self, kind: GroupResource, namespace: str) -> int:
        informer = self._followed.get(kind)
        return len(informer.store.unseen(namespace)) if informer is not None else 0

    def keep_asked(self) -> None:
        """Stop watching kinds that are only counted and were not requested since the last call."""
        kept = self._asked | _MEASURED.keys()
        self._missing &= kept
        for kind in self._followed.keys() - kept:
            self._release(kind)
            del self._followed[kind], self._since[kind]
        self._asked = set()

    def _release(self, kind: GroupResource) -> None:
        listener = self._counting.pop(kind, None)
        if listener is not None:
            self._context.informers.release(self._followed[kind], listener)

    def forget(self, namespace: str) -> None:
        """Drop a namespace that has no quotas any more."""
        self._ledger.forget(namespace)

    async def restart(self) -> None:
        """Have all objects measured again."""
        self._known_classes = None
        turns = Turns.of_loop()
        for _ in self._ledger.restart():
            await turns.step()

    async def _is_moved(self, kind: GroupResource) -> bool:
        """Whether the watched version of a custom resource stopped being served, or a version is served again."""
        if kind in _MEASURED:
            return False
        gvr = self._followed[kind].resource.gvr
        try:
            if kind not in self._counting:
                return await self._served(kind) is not None
            return await self._served(kind, gvr.version) is None
        except RequestError:  # discovery fails: the informer is kept
            return False

    async def _served(self, kind: GroupResource, version: str = "") -> ServedResource | None:
        """The resource of a kind; None if it is not served. Raises RequestError."""
        try:
            return await self._mapper.resource(*kind, version)
        except NoMatch:
            if not version:
                self._missing.add(kind)
            return None

    async def _follow(self, kind: GroupResource, now: float) -> None:
        served = await self._served(kind)
        known = self._followed.get(kind)
        if served is None:
            if known is not None and kind not in _MEASURED and not len(known.store) and not known.store.unknown():
                self._release(kind)
            return
        counting = kind in _MEASURED or kind in self._counting
        if known is not None and counting and known.resource.gvr == served.gvr:
            return
        if not served.namespaced or not served.supports(*_VERBS):
            return
        measured = _MEASURED.get(kind)
        informers = self._context.informers
        if measured is None:
            counted = informers.metadata(served.partial())
            self._release(kind)
            self._counting[kind] = counted.listen(
                on_add=lambda obj: self._appeared(obj.namespace),
                on_delete=lambda obj: self._released(kind, obj.metadata),
                on_unknown_delete=lambda obj: self._released(kind, obj.metadata),
            )
            self._followed[kind] = counted
        else:
            informer: AnyInformer = informers.get(measured)
            if kind == CLAIM_KIND:
                informer.store.add_index(BY_POD, by_pod)
            self._followed[kind] = informer
            informer.listen(
                on_add=partial(self._added, kind),
                on_update=partial(self._updated, kind),
                on_delete=partial(self._deleted, kind),
                on_unknown_delete=lambda obj: self._released(kind, obj.metadata),
            )
        self._since[kind] = now

    def _added(self, kind: GroupResource, obj: Object) -> None:
        self._ledger.touch(kind, obj)
        self._appeared(obj.namespace)

    def _updated(self, kind: GroupResource, old: Object, new: Object) -> None:
        self._ledger.touch(kind, new)
        now, due = self._context.clock.now(), plan.overdue_from(new)
        if plan.frees(old, new, now):
            self._released(kind, new.metadata)
        elif due is not None and due != plan.overdue_from(old):
            self._ending(kind, new.namespace, due - now.timestamp() + JUST_AFTER_S)

    def _deleted(self, kind: GroupResource, obj: Object) -> None:
        self._ledger.touch(kind, obj)
        self._released(kind, obj.metadata)

    def _class_changed(self, obj: DeviceClass) -> None:
        self._known_classes = None
        self._ledger.touch_all(CLAIM_KIND)

    def _class_updated(self, old: DeviceClass, new: DeviceClass) -> None:
        if old.spec != new.spec:
            self._class_changed(new)

    def _keys(self, kind: GroupResource, namespace: str) -> Iterable[str]:
        informer = self._followed.get(kind)
        objects: list[Object] = informer.store.by_index(NAMESPACE, namespace) if informer is not None else []
        return (obj.key for obj in objects)

    def _find(self, kind: GroupResource, key: str) -> Object | None:
        informer = self._followed.get(kind)
        found: Object | None = informer.store.get(key) if informer is not None else None
        return found

    def _claims_of(self, uid: str) -> list[Object]:
        informer = self._followed.get(CLAIM_KIND)
        return informer.store.by_index(BY_POD, uid) if informer is not None else []
