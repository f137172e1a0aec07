"""The usage of the objects in namespaces with quotas, updated with every change.

Only namespaces with a quota are kept. Each object is measured when it appears or changes, so that the cost of a quota's
sync does not depend on the number of objects.
"""

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable
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

FEW = 100
"""The number of overdue deletions up to which entries of deleted pods are kept."""


class Lookups(msgspec.Struct, frozen=True):
    """Functions that read caches. find: an object of a kind by key. claims_of: the claims created for a pod, by its
    uid. classes: the device classes."""

    find: Callable[[GroupResource, str], Object | None]
    claims_of: Callable[[str], Iterable[Object]]
    classes: Callable[[], DeviceClasses]


class Ledger:
    """The totals of every measured kind in every kept namespace."""

    def __init__(self, lookups: Lookups, features: Features) -> None:
        self._look = lookups
        self._features = features
        self._charges = Charges()
        self._totals: dict[str, dict[GroupResource, Totals]] = {}
        self._due: defaultdict[str, list[tuple[float, str]]] = defaultdict(list)

    def keeps(self, kind: GroupResource, namespace: str) -> bool:
        """Whether a kind is measured in a namespace."""
        return kind in self._totals.get(namespace, {})

    def keep(self, kind: GroupResource, namespace: str) -> None:
        """Measure a kind in a namespace from now on. Existing objects have to be ``put``."""
        self._totals.setdefault(namespace, {}).setdefault(kind, Totals())

    def forget(self, namespace: str) -> None:
        """Drop a namespace that has no quota any more."""
        self._totals.pop(namespace, None)
        self._due.pop(namespace, None)

    def kept(self, kind: GroupResource) -> list[str]:
        """The namespaces in which a kind is measured."""
        return [namespace for namespace, kinds in self._totals.items() if kind in kinds]

    def put(self, kind: GroupResource, obj: Object, now: datetime) -> None:
        """Add or update an object."""
        totals = self._totals.get(obj.namespace, {}).get(kind)
        if totals is None:
            return
        changed = totals.put(obj.key, self._charge(kind, obj, now))
        due = plan.overdue_from(obj)
        if due is not None and due >= now.timestamp():
            self._note_overdue(obj.namespace, obj.key, due, totals)
        if changed or kind == CLAIM_KIND:
            self._put_claims(kind, obj, now)

    def update(self, kind: GroupResource, old: Object, new: Object, now: datetime) -> None:
        """Update an object if the change affects its usage."""
        if not self.keeps(kind, new.namespace):
            return
        if not plan.measured_alike(old, new):
            self.put(kind, new, now)
        if _names_another_claim(old, new):
            self._put_claims(kind, new, now)

    def drop(self, kind: GroupResource, obj: Object, now: datetime) -> None:
        """Remove a deleted object."""
        totals = self._totals.get(obj.namespace, {}).get(kind)
        if totals is not None and totals.drop(obj.key):
            self._put_claims(kind, obj, now)

    def used(self, kind: GroupResource, namespace: str, asked: tuple[Requirement, ...], now: datetime) -> Amounts:
        """The usage of the objects of a kind that meet all requirements."""
        self._expire(namespace, now)
        known = plan.known_scopes(kind, self._features)
        totals = self._totals.get(namespace, {}).get(kind)
        return totals.used(lambda profile: matches(profile, asked, known)) if totals is not None else {}

    def _charge(self, kind: GroupResource, obj: Object, now: datetime) -> Charge:
        profile, usage = plan.measure(kind, obj, now, self._features)
        if kind == CLAIM_KIND and self._features.extended_resources:
            usage = devices.with_extended(usage, self._look.classes(), self._charged_to_pod(obj, now))
        return self._charges.make(profile, usage)

    def _charged_to_pod(self, claim: Object, now: datetime) -> Amounts:
        """The charge of the pod that a claim was created for, as far as it reduces the claim's charge."""
        owner = devices.pod_of(claim)
        if owner is None:
            return {}
        pod = self._look.find(plan.POD_KIND, f"{claim.namespace}/{owner.name}")
        if not isinstance(pod, Pod) or not devices.pays_for(pod, claim, self._look.claims_of(owner.uid)):
            return {}
        return plan.measure(plan.POD_KIND, pod, now, self._features)[1]

    def _put_claims(self, kind: GroupResource, obj: Object, now: datetime) -> None:
        """Measure claims again whose charge depends on this pod or claim."""
        if not self._features.extended_resources or not self.keeps(CLAIM_KIND, obj.namespace):
            return
        uid = obj.uid
        if kind == CLAIM_KIND:
            owner = devices.pod_of(obj)
            if owner is None:
                return
            uid = owner.uid
        totals = self._totals[obj.namespace][CLAIM_KIND]
        for claim in self._look.claims_of(uid):
            if claim.key != obj.key and totals.get(claim.key) is not None:
                totals.put(claim.key, self._charge(CLAIM_KIND, claim, now))

    def _note_overdue(self, namespace: str, key: str, due: float, pods: Totals) -> None:
        """Record when a pod's deletion is overdue. Entries of pods that are gone are removed now and then, since grace
        periods may be years."""
        waiting = self._due[namespace]
        heapq.heappush(waiting, (due, key))
        if len(waiting) > 2 * len(pods) + FEW:
            first: dict[str, float] = {}
            for due, key in waiting:
                if pods.get(key) is not None:
                    first[key] = min(due, first.get(key, due))
            waiting[:] = sorted((due, key) for key, due in first.items())

    def _expire(self, namespace: str, now: datetime) -> None:
        """Measure pods again whose deletion is overdue."""
        due = self._due.get(namespace)
        while due and due[0][0] < now.timestamp():
            _, key = heapq.heappop(due)
            pod = self._look.find(plan.POD_KIND, key)
            if pod is not None:
                self.put(plan.POD_KIND, pod, now)


def _names_another_claim(old: Object, new: Object) -> bool:
    """Whether the claim for extended resources in a pod's status changed."""
    if not isinstance(old, Pod) or not isinstance(new, Pod):
        return False
    return old.status.extended_resource_claim_status != new.status.extended_resource_claim_status
