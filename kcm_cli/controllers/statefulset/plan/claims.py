"""The claims of a StatefulSet's pods: created from templates, with owners according to the retention policy.

A claim is deleted with its owner: with the set, or with a pod that is scaled down. A claim without owners is kept.

upstream: pkg/controller/statefulset/stateful_set_utils.go#isClaimOwnerUpToDate, updateClaimOwnerRefForSetAndPod
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from kcm_cli.api.apps import STATEFUL_SETS, StatefulSet
from kcm_cli.api.core import PODS, PersistentVolumeClaim
from kcm_cli.controllers.statefulset.plan.identity import in_range, pod_name
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_list, nested_map, nested_str
from kcm_cli.machinery.meta import Object, ObjectMeta, OwnerReference, PartialObject
from kcm_cli.planning.pod_template import controller_ref, labels_of

RETAIN, DELETE = "Retain", "Delete"


class Claims(Protocol):
    """The existing claims. Each is looked up when it is asked for: pods times claim templates may be millions."""

    def get(self, name: str, /) -> PersistentVolumeClaim | None:
        """The claim of this name."""


class Ownership(msgspec.Struct, frozen=True):
    """The wrong owners of a claim.

    references: the owner references to write; None if they are right. conflicting: another object controls the claim,
    so that the policy does not apply.
    """

    claim: PersistentVolumeClaim
    references: tuple[Doc, ...] | None
    conflicting: bool


class ClaimWork(msgspec.Struct, frozen=True):
    """The work on a pod's claims before the pod can start. ``terminating``: claims that are being deleted, which block
    the pod."""

    missing: tuple[Doc, ...] = ()
    terminating: tuple[str, ...] = ()
    ownership: tuple[Ownership, ...] = ()

    @property
    def empty(self) -> bool:
        return not (self.missing or self.terminating or self.ownership)


NO_WORK = ClaimWork()


def template_names(set_: StatefulSet) -> tuple[str, ...]:
    """The names of the claim templates, which are also the names of the volumes."""
    return tuple(nested_str(template, "metadata", "name") for template in set_.spec.volume_claim_templates)


def claim_name(set_: StatefulSet, template: str, ordinal: int) -> str:
    return f"{template}-{set_.name}-{ordinal}"


def claim_work(set_: StatefulSet, ordinal: int, uid: str, claims: Claims) -> ClaimWork:
    """All work on a pod's claims. ``uid``: the pod's uid; empty for one that does not exist yet."""
    if not set_.spec.volume_claim_templates:
        return NO_WORK
    missing, terminating = to_create(set_, ordinal, claims)
    return ClaimWork(missing, terminating, ownership(set_, ordinal, uid, claims))


def to_create(set_: StatefulSet, ordinal: int, claims: Claims) -> tuple[tuple[Doc, ...], tuple[str, ...]]:
    """The bodies of missing claims, and the names of claims that are being deleted."""
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
    """The pod's claims whose owners are wrong."""
    found: list[Ownership] = []
    for name in template_names(set_):
        claim = claims.get(claim_name(set_, name, ordinal))
        if claim is not None:
            checked = _Owners(set_, ordinal, uid, claim).check()
            if checked.conflicting or checked.references is not None:
                found.append(checked)
    return tuple(found)


def blocked_by_stale_claim(set_: StatefulSet, ordinal: int, claims: Claims) -> bool:
    """Whether a claim is owned by an earlier pod of this name. It is about to be deleted with that pod, so the new pod
    has to wait."""
    if _policy(set_)[1] == RETAIN:
        return False
    owner = _pod(set_, ordinal, "")
    found = (claims.get(claim_name(set_, name, ordinal)) for name in template_names(set_))
    return any(claim is not None and _stale(claim, owner, "v1", PODS.kind) for claim in found)


class _Owners:
    """Compares the owners of one claim with the policy."""

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
        """Whether another object controls a claim to which a policy applies."""
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
            return True  # it belongs to an earlier set of this name
        if _stale(claim, self._pod, PODS.api_version, PODS.kind):
            return True
        by_set, by_pod = self._owned_by(self._set), self._owned_by(self._pod)
        if conflicting:
            return not (by_set or by_pod)
        if self._owned_without_control():
            return False
        return (by_set, by_pod) == self._expected()

    def _expected(self) -> tuple[bool, bool]:
        """Whether the set and the pod should own the claim. An unknown policy retains it."""
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
    """(whenDeleted, whenScaled)."""
    policy = set_.spec.persistent_volume_claim_retention_policy
    return (policy.when_deleted, policy.when_scaled) if policy is not None else (RETAIN, RETAIN)


def _pod(set_: StatefulSet, ordinal: int, uid: str) -> PartialObject:
    return PartialObject(metadata=ObjectMeta(name=pod_name(set_, ordinal), namespace=set_.namespace, uid=uid))


def _names(ref: OwnerReference, obj: Object, api_version: str, kind: str) -> bool:
    return ref.name == obj.name and ref.kind == kind and ref.api_version == api_version


def _stale(claim: PersistentVolumeClaim, obj: Object, api_version: str, kind: str) -> bool:
    """Whether the first owner with this name has another uid."""
    for ref in claim.metadata.owner_references:
        if _names(ref, obj, api_version, kind):
            return ref.uid != obj.uid
    return False


def _new_claim(set_: StatefulSet, template: Doc, name: str) -> Doc:
    """The body of a claim. It gets the labels of its template and the matchLabels of the set's selector.

    The set owns it if it is to be deleted with the set. Otherwise it would be updated while it is bound, and most of
    these updates conflict. A claim to which the template gives another controller, as operators do, keeps that one.
    """
    selector = set_.spec.selector
    labels = {**labels_of(template), **((selector.match_labels if selector else None) or {})}
    metadata: Doc = {**nested_map(template, "metadata"), "name": name, "namespace": set_.namespace}
    if labels:
        metadata["labels"] = labels
    owners = nested_list(metadata, "ownerReferences")
    if _policy(set_)[0] == DELETE and not any(isinstance(ref, dict) and ref.get("controller") for ref in owners):
        metadata["ownerReferences"] = [*owners, controller_ref(STATEFUL_SETS, set_)]
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **template, "metadata": metadata}
