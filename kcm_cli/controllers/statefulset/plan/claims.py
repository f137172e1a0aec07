"""The claims of a StatefulSet's pods: created from templates, and owned as the retention policy says.

Who owns a claim decides when it goes: owned by the set it goes with the set, owned by a pod that is scaled away it
goes with that pod, owned by neither it stays.

upstream: pkg/controller/statefulset/stateful_set_utils.go#isClaimOwnerUpToDate, updateClaimOwnerRefForSetAndPod
"""

from collections.abc import Mapping, Sequence

import msgspec

from kcm_cli.api.apps import STATEFUL_SETS, StatefulSet
from kcm_cli.api.core import PODS, PersistentVolumeClaim
from kcm_cli.controllers.statefulset.plan.identity import in_range, pod_name
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_map, nested_str
from kcm_cli.machinery.meta import Object, ObjectMeta, OwnerReference, PartialObject
from kcm_cli.planning.pod_template import controller_ref, labels_of

RETAIN, DELETE = "Retain", "Delete"

Claims = Mapping[str, PersistentVolumeClaim]


class Ownership(msgspec.Struct, frozen=True):
    """What is wrong with the owners of a claim.

    references: those that it should have; None if they are right. conflicting: another owner controls it, too, so
    that the policy does not apply to it.
    """

    claim: PersistentVolumeClaim
    references: tuple[Doc, ...] | None
    conflicting: bool


class ClaimWork(msgspec.Struct, frozen=True):
    """What has to be done for the claims of a pod before it can start. ``terminating``: being deleted, so it cannot."""

    missing: tuple[Doc, ...] = ()
    terminating: tuple[str, ...] = ()
    ownership: tuple[Ownership, ...] = ()

    @property
    def empty(self) -> bool:
        return not (self.missing or self.terminating or self.ownership)


NO_WORK = ClaimWork()


def template_names(set_: StatefulSet) -> tuple[str, ...]:
    """The names of the claim templates, which are those of the volumes, too."""
    return tuple(nested_str(template, "metadata", "name") for template in set_.spec.volume_claim_templates)


def claim_name(set_: StatefulSet, template: str, ordinal: int) -> str:
    return f"{template}-{set_.name}-{ordinal}"


def claim_work(set_: StatefulSet, ordinal: int, uid: str, claims: Claims) -> ClaimWork:
    """Everything for the claims of a pod. ``uid`` is empty for a pod that does not exist yet."""
    if not set_.spec.volume_claim_templates:
        return NO_WORK
    missing, terminating = to_create(set_, ordinal, claims)
    return ClaimWork(missing, terminating, ownership(set_, ordinal, uid, claims))


def to_create(set_: StatefulSet, ordinal: int, claims: Claims) -> tuple[tuple[Doc, ...], tuple[str, ...]]:
    """The claims that a pod lacks, and the names of those that are being deleted."""
    missing: list[Doc] = []
    terminating: list[str] = []
    for template in set_.spec.volume_claim_templates:
        name = claim_name(set_, nested_str(template, "metadata", "name"), ordinal)
        claim = claims.get(name)
        if claim is None:
            missing.append(_new_claim(set_, template, name))
        elif claim.deleting:
            terminating.append(name)
    return tuple(missing), tuple(terminating)


def ownership(set_: StatefulSet, ordinal: int, uid: str, claims: Claims) -> tuple[Ownership, ...]:
    """The pod's claims whose owners are not as they should be."""
    found: list[Ownership] = []
    for name in template_names(set_):
        claim = claims.get(claim_name(set_, name, ordinal))
        if claim is not None:
            checked = _Owners(set_, ordinal, uid, claim).check()
            if checked.conflicting or checked.references is not None:
                found.append(checked)
    return tuple(found)


def blocked_by_stale_claim(set_: StatefulSet, ordinal: int, claims: Claims) -> bool:
    """Whether a claim still belongs to an earlier pod of this name and is about to go with it: wait for that."""
    if _policy(set_)[1] == RETAIN:
        return False
    owner = _pod(set_, ordinal, "")
    found = (claims.get(claim_name(set_, name, ordinal)) for name in template_names(set_))
    return any(claim is not None and _stale(claim, owner, "v1", PODS.kind) for claim in found)


class _Owners:
    """The owners of one claim against the policy."""

    def __init__(self, set_: StatefulSet, ordinal: int, uid: str, claim: PersistentVolumeClaim) -> None:
        self._set = set_
        self._pod = _pod(set_, ordinal, uid)
        self._scaled_down = not in_range(set_, ordinal)
        self._claim = claim
        self._deleted, self._scaled = _policy(set_)

    def check(self) -> Ownership:
        conflicting = self._conflicting()
        if self._up_to_date(conflicting):
            return Ownership(self._claim, None, conflicting)
        kept = [ref for ref in self._claim.metadata.owner_references if not self._ours(ref)]
        references = [msgspec.to_builtins(ref) for ref in kept]
        if not conflicting:
            references += self._wanted(kept)
        return Ownership(self._claim, tuple(references), conflicting)

    def _conflicting(self) -> bool:
        """Whether another controller manages a claim to which a policy applies."""
        if self._deleted == RETAIN and self._scaled == RETAIN:
            return False
        for ref in self._claim.metadata.owner_references:
            if _names(ref, self._set, STATEFUL_SETS.api_version, STATEFUL_SETS.kind):
                if ref.uid != self._set.uid:
                    return True
            elif _names(ref, self._pod, PODS.api_version, PODS.kind):
                if ref.uid != self._pod.uid:
                    return True
            elif ref.controller:
                return True
        return False

    def _up_to_date(self, conflicting: bool) -> bool:
        claim = self._claim
        if _stale(claim, self._set, STATEFUL_SETS.api_version, STATEFUL_SETS.kind):
            return True  # left by an earlier set of this name: not ours to touch
        if _stale(claim, self._pod, PODS.api_version, PODS.kind):
            return True
        by_set, by_pod = self._owned_by(self._set), self._owned_by(self._pod)
        if conflicting:
            return not (by_set or by_pod)
        if self._owned_without_control():
            return False
        return (by_set, by_pod) == self._expected()

    def _expected(self) -> tuple[bool, bool]:
        """Whether the set and the pod should own the claim; an unknown policy retains."""
        match self._deleted, self._scaled:
            case "Delete", "Retain":
                return True, False
            case "Retain", "Delete":
                return False, self._scaled_down
            case "Delete", "Delete":
                return not self._scaled_down, self._scaled_down
        return False, False

    def _wanted(self, kept: Sequence[OwnerReference]) -> list[Doc]:
        by_set, by_pod = self._expected()
        present = {ref.uid for ref in kept}
        wanted: list[Doc] = []
        if by_set and self._set.uid not in present:
            wanted.append(controller_ref(STATEFUL_SETS, self._set))
        if by_pod and self._pod.uid not in present:
            wanted.append(controller_ref(PODS, self._pod))
        return wanted

    def _ours(self, ref: OwnerReference) -> bool:
        return _names(ref, self._set, STATEFUL_SETS.api_version, STATEFUL_SETS.kind) or _names(
            ref, self._pod, PODS.api_version, PODS.kind
        )

    def _owned_by(self, owner: Object) -> bool:
        return any(ref.uid == owner.uid for ref in self._claim.metadata.owner_references)

    def _owned_without_control(self) -> bool:
        ours = (self._set.uid, self._pod.uid)
        return any(ref.uid in ours and not ref.controller for ref in self._claim.metadata.owner_references)


def _policy(set_: StatefulSet) -> tuple[str, str]:
    """(when deleted, when scaled)."""
    policy = set_.spec.persistent_volume_claim_retention_policy
    return (policy.when_deleted, policy.when_scaled) if policy is not None else (RETAIN, RETAIN)


def _pod(set_: StatefulSet, ordinal: int, uid: str) -> PartialObject:
    return PartialObject(metadata=ObjectMeta(name=pod_name(set_, ordinal), namespace=set_.namespace, uid=uid))


def _names(ref: OwnerReference, obj: Object, api_version: str, kind: str) -> bool:
    return ref.name == obj.name and ref.kind == kind and ref.api_version == api_version


def _stale(claim: PersistentVolumeClaim, obj: Object, api_version: str, kind: str) -> bool:
    """Whether the first owner of this name is an earlier object."""
    for ref in claim.metadata.owner_references:
        if _names(ref, obj, api_version, kind):
            return ref.uid != obj.uid
    return False


def _new_claim(set_: StatefulSet, template: Doc, name: str) -> Doc:
    """A claim carries the labels of its template and those by which the set selects its pods."""
    selector = set_.spec.selector
    labels = {**labels_of(template), **((selector.match_labels if selector else None) or {})}
    metadata: Doc = {**nested_map(template, "metadata"), "name": name, "namespace": set_.namespace}
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **template, "metadata": metadata}
