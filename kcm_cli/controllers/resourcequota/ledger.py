"""The usage of the objects in namespaces with quotas.

The caches decide. A change only marks the objects whose charge it may affect. ``settle`` measures the marked objects as
the caches have them at that moment, and ``used``, called right after it, equals a recount of the caches. So the cost of
a sync depends on the changes since the last one, and not on the number of objects, and it does not matter in which
order changes and measurements come.

The condition: each change of what a charge depends on marks the object. A charge depends on the object (``touch``), for
a claim also on its pod and the pod's other claims (``touch`` of these) and on the device classes (``touch_all``), and
for a pod on the time (``Place.due``). ``restart`` measures everything again. Each resync calls it, so that what slipped
through does not stay wrong.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

import msgspec

from kcm_cli.api.core import Pod
from kcm_cli.controllers.resourcequota import plan
from kcm_cli.controllers.resourcequota.plan import Features, GroupResource
from kcm_cli.machinery.meta import Object
from kcm_cli.planning.pod_resources import Amounts
from kcm_cli.planning.quota import devices
from kcm_cli.planning.quota.charges import Charge, Charges, Totals
from kcm_cli.planning.quota.devices import CLAIM_KIND, DeviceClasses
from kcm_cli.planning.quota.scopes import Requirement, matches

AT_ONCE = 50
"""Objects that are measured before other tasks run."""
JUST_AFTER_S = 0.1
"""At the time itself, a deletion is not overdue yet."""


class Lookups(msgspec.Struct, frozen=True):
    """Functions that read caches. find: an object of a kind by key. keys: the keys of a kind's objects in a namespace.
    claims_of: the claims created for a pod, by its uid. classes: the device classes. now: the time."""

    find: Callable[[GroupResource, str], Object | None]
    keys: Callable[[GroupResource, str], Iterable[str]]
    claims_of: Callable[[str], Iterable[Object]]
    classes: Callable[[], DeviceClasses]
    now: Callable[[], datetime]


class Place:
    """The objects of one kind in one namespace. marked: the keys of objects to measure. due: when the deletion of a pod
    is overdue, by key (seconds since 1970); its charge ends then without a change."""

    def __init__(self, keys: Iterable[str]) -> None:
        self.totals = Totals()
        self.marked = set(keys)
        self.due: dict[str, float] = {}

    def drop(self, key: str) -> None:
        """Remove an object that does not exist any more."""
        self.totals.drop(key)
        self.marked.discard(key)
        self.due.pop(key, None)


class Ledger:
    """The totals of every kept kind and namespace."""

    def __init__(self, lookups: Lookups, features: Features) -> None:
        self._lookups = lookups
        self._features = features
        self._charges = Charges()
        self._places: dict[str, dict[GroupResource, Place]] = {}

    def keeps(self, kind: GroupResource, namespace: str) -> bool:
        """Whether a kind is measured in a namespace."""
        return kind in self._places.get(namespace, {})

    def keep(self, kind: GroupResource, namespace: str) -> None:
        """Measure a kind in a namespace from now on."""
        if not self.keeps(kind, namespace):
            self._places.setdefault(namespace, {})[kind] = Place(self._lookups.keys(kind, namespace))

    def forget(self, namespace: str) -> None:
        """Drop a namespace that has no quota any more."""
        self._places.pop(namespace, None)

    def restart(self) -> Iterator[None]:
        """Have everything measured again: at each step one kind in one namespace."""
        for namespace, kinds in tuple(self._places.items()):
            for kind in tuple(kinds):
                kinds[kind] = Place(self._lookups.keys(kind, namespace))
                yield

    def touch(self, kind: GroupResource, obj: Object) -> None:
        """An object was added, updated or deleted."""
        kinds = self._places.get(obj.namespace)
        if kinds is None:
            return
        self._mark(kinds.get(kind), kind, obj.key)
        claims = kinds.get(CLAIM_KIND)
        if claims is not None and self._features.extended_resources:
            uid = _uid_of_pod(kind, obj)
            for claim in self._lookups.claims_of(uid) if uid else ():
                if claim.namespace == obj.namespace:
                    claims.marked.add(claim.key)

    def touch_all(self, kind: GroupResource) -> None:
        """What the charge of each object of a kind depends on has changed."""
        for kinds in self._places.values():
            if kind in kinds:
                kinds[kind].marked.update(kinds[kind].totals)

    async def settle(self, kinds: Iterable[GroupResource], namespace: str) -> None:
        """Measure the marked objects of kept kinds, also those that are marked meanwhile. Yields to the loop.

        An object that cannot be measured stays marked: without a charge, its quota would be written too low.
        """
        kept = self._places.get(namespace, {})
        found = [kind for kind in kinds if kind in kept]
        measured = 0
        while any(self._marked(kind, kept[kind]) for kind in found):
            for kind in found:
                place = kept[kind]
                for key in tuple(place.marked):
                    if key not in place.marked:  # measured by another settle, or deleted
                        continue
                    self._measure(kind, key, place)
                    place.marked.discard(key)
                    measured += 1
                    if measured % AT_ONCE == 0:
                        await asyncio.sleep(0)

    def due_s(self, kinds: Iterable[GroupResource], namespace: str) -> float | None:
        """Seconds until the deletion of an object is overdue, as of the last ``settle``; None if none is awaited."""
        places = self._places.get(namespace, {})
        found = (due for kind in kinds if kind in places for due in places[kind].due.values())
        first = min(found, default=None)
        return None if first is None else max(0.0, first - self._lookups.now().timestamp()) + JUST_AFTER_S

    def used(self, kind: GroupResource, namespace: str, asked: tuple[Requirement, ...]) -> Amounts:
        """The usage of the objects of a kind that meet all requirements, as of the last ``settle``."""
        known = plan.known_scopes(kind, self._features)
        place = self._places.get(namespace, {}).get(kind)
        return place.totals.used(lambda profile: matches(profile, asked, known)) if place is not None else {}

    def _mark(self, place: Place | None, kind: GroupResource, key: str) -> None:
        if place is None:
            return
        if self._lookups.find(kind, key) is None:
            place.drop(key)
        else:
            place.marked.add(key)

    def _marked(self, kind: GroupResource, place: Place) -> bool:
        """Whether objects are to be measured, after those whose deletion is overdue were marked."""
        now = self._lookups.now().timestamp()
        for key in [key for key, due in place.due.items() if due < now]:
            obj = self._lookups.find(kind, key)
            if obj is None:
                place.drop(key)
            else:
                self.touch(kind, obj)
        return bool(place.marked)

    def _measure(self, kind: GroupResource, key: str, place: Place) -> None:
        """Replace the charge of one object. Does not await, so that the charge is that of the cached object."""
        obj = self._lookups.find(kind, key)
        place.due.pop(key, None)
        if obj is None:
            place.drop(key)
            return
        now = self._lookups.now()
        place.totals.put(key, self._charge(kind, obj, now))
        due = plan.overdue_from(obj)
        if due is not None and due >= now.timestamp():
            place.due[key] = due

    def _charge(self, kind: GroupResource, obj: Object, now: datetime) -> Charge:
        profile, usage = plan.measure(kind, obj, now, self._features)
        if kind == CLAIM_KIND and self._features.extended_resources:
            usage = devices.with_extended(usage, self._lookups.classes(), self._charged_to_pod(obj, now))
        return self._charges.make(profile, usage)

    def _charged_to_pod(self, claim: Object, now: datetime) -> Amounts:
        """The charge of the pod that a claim was created for, as far as it reduces the claim's charge."""
        owner = devices.pod_of(claim)
        if owner is None:
            return {}
        pod = self._lookups.find(plan.POD_KIND, f"{claim.namespace}/{owner.name}")
        if not isinstance(pod, Pod) or not devices.pays_for(pod, claim, self._lookups.claims_of(owner.uid)):
            return {}
        return plan.measure(plan.POD_KIND, pod, now, self._features)[1]


def _uid_of_pod(kind: GroupResource, obj: Object) -> str:
    """The uid of the pod with whose claims an object is charged; empty for objects that affect no claim."""
    if kind == plan.POD_KIND:
        return obj.uid
    owner = devices.pod_of(obj) if kind == CLAIM_KIND else None
    return owner.uid if owner is not None else ""
