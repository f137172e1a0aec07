"""The ResourceClaims of pods and PodGroups: which ones they use, and which owner a claim was created for.

If a pod and its PodGroup have the same entry, the pod uses the group's claim (gate DRAWorkloadResourceClaims), which is
created and reserved for the group.

upstream: staging/src/k8s.io/dynamic-resource-allocation/resourceclaim
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from kcm_cli.api.core import PODS, Pod, PodResourceClaim, PodResourceClaimStatus
from kcm_cli.api.devices import Consumer, DeviceToleration
from kcm_cli.api.scheduling import POD_GROUPS, PodGroup
from kcm_cli.machinery.codec import Doc, decode_paths
from kcm_cli.machinery.documents import nested_list
from kcm_cli.machinery.meta import Object, OwnerReference, controller_of

BY_GROUP = "pod group"
"""The name of the index of pods by their PodGroup."""
POD_CLAIM = "resource.kubernetes.io/pod-claim-name"
"""The annotation of a claim that was made from a template: which entry of its owner it is for."""
EXTENDED = "resource.kubernetes.io/extended-resource-claim"
FINALIZER = "resource.kubernetes.io/delete-protection"


class Unsupported(Exception):
    """An entry has neither a claim nor a template, so it is of a newer API."""

    reason = "ResourceClaimUnsupported"


class Reference(msgspec.Struct, frozen=True):
    """A claim in use. ``generated``: it was created from a template, so its owner must be checked."""

    name: str
    generated: bool


class NotNeeded(msgspec.Struct, frozen=True):
    """The status records that no claim is needed."""


class NotCreated(msgspec.Struct, frozen=True):
    """No claim is recorded for the template yet."""


Found = Reference | NotNeeded | NotCreated


def named(user: Pod | PodGroup, entry: PodResourceClaim) -> Found:
    """The claim behind an entry of a pod or a PodGroup. Raises Unsupported."""
    if entry.resource_claim_name is not None:
        return Reference(entry.resource_claim_name, generated=False)
    if entry.resource_claim_template_name is None:
        raise Unsupported(_unsupported(user, entry))
    recorded = _recorded(user.status.resource_claim_statuses, entry.name)
    if recorded is None:
        return NotCreated()
    if recorded.resource_claim_name is None:
        return NotNeeded()
    return Reference(recorded.resource_claim_name, generated=True)


def references(user: Pod | PodGroup) -> Iterator[Reference]:
    """The claims whose names are known."""
    for entry in user.spec.resource_claims:
        if entry.resource_claim_name is None and entry.resource_claim_template_name is None:
            continue
        found = named(user, entry)
        if isinstance(found, Reference):
            yield found


def claim_keys(user: Pod | PodGroup) -> tuple[str, ...]:
    """Index: the keys of the claims whose names are known."""
    if not user.spec.resource_claims:
        return ()
    return tuple(dict.fromkeys(f"{user.namespace}/{found.name}" for found in references(user)))


def has_claims(pod: Pod) -> bool:
    """Whether a pod uses claims: of its spec, or one that the scheduler created for its extended resources."""
    return bool(pod.spec.resource_claims) or pod.status.extended_resource_claim_status is not None


def used(pod: Pod) -> Iterator[Reference]:
    """The claims of a pod whose names are known, including the one for its extended resources."""
    yield from references(pod)
    extended = pod.status.extended_resource_claim_status
    if extended is not None:
        yield Reference(extended.resource_claim_name, generated=True)


def group_key(pod: Pod) -> str:
    """The key of the PodGroup that a pod belongs to; empty for none."""
    group = pod.spec.scheduling_group
    return f"{pod.namespace}/{group.pod_group_name}" if group is not None and group.pod_group_name is not None else ""


def member_of(pod: Pod) -> tuple[str, ...]:
    """Index: the key of the PodGroup of a pod."""
    key = group_key(pod)
    return (key,) if key else ()


def not_for(user: Pod | PodGroup, claim: Object, *, groups: bool) -> str:
    """Why a generated claim does not belong to this user; empty if it does. ``groups``: a pod may use its group's."""
    ref = controller_of(claim)
    if ref is not None and ref.uid == user.uid:
        return ""
    kind, key = _kind(user), user.key
    if kind == PODS.kind and groups:
        if ref is not None and _is_group_of(user, ref):
            return ""
        group = group_key(user).rpartition("/")[2] if isinstance(user, Pod) else ""
        owners = f"neither Pod nor PodGroup {group} is the owner"
    else:
        owners = f"{kind} is not owner"
    return f"ResourceClaim {claim.key} was not created for {kind} {key} ({owners})"


def is_reserved_for(pod: Pod, users: Iterable[Consumer], *, groups: bool) -> bool:
    """Whether a claim is reserved for a pod or, by name, for its group (a pod does not have the group's uid)."""
    group = group_key(pod).rpartition("/")[2] if groups else ""
    return any(
        consumer.uid == pod.uid or (group and is_group(consumer) and consumer.name == group) for consumer in users
    )


def is_pod(consumer: Consumer) -> bool:
    return consumer.api_group == "" and consumer.resource == PODS.plural


def is_group(consumer: Consumer) -> bool:
    return consumer.api_group == POD_GROUPS.gvr.group and consumer.resource == POD_GROUPS.plural


def shares(pod: Pod, group: PodGroup | None, entry: PodResourceClaim) -> bool:
    """Whether a pod uses its group's claim for an entry."""
    return group is not None and group_key(pod) == group.key and entry in group.spec.resource_claims


def consumer_of(pod: Pod, group: PodGroup | None = None, entry: PodResourceClaim | None = None) -> Consumer:
    """The consumer to reserve a pod's claim for: the group if it has the same entry, else the pod."""
    if group is not None and entry is not None and shares(pod, group, entry):
        return Consumer(POD_GROUPS.gvr.group, POD_GROUPS.plural, group.name, group.uid)
    return Consumer("", PODS.plural, pod.name, pod.uid)


def users_of(claim: Object) -> list[Doc]:
    """The raw ``reservedFor`` entries of a claim, with fields that this version does not know."""
    users = nested_list(decode_paths(claim.raw or b"{}", [("status", "reservedFor")]), "status", "reservedFor")
    return [user for user in users if isinstance(user, dict)]


def user_doc(user: Consumer) -> Doc:
    """An entry of ``reservedFor``."""
    found: Doc = {"resource": user.resource, "name": user.name, "uid": user.uid}
    return {"apiGroup": user.api_group, **found} if user.api_group else found


def tolerates(toleration: DeviceToleration, key: str, value: str, effect: str) -> bool:
    """Whether a toleration matches a device's taint."""
    if toleration.effect not in ("", effect) or toleration.key not in ("", key):
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == value
    return toleration.operator == "Exists"


def _recorded(statuses: Sequence[PodResourceClaimStatus], name: str) -> PodResourceClaimStatus | None:
    return next((status for status in statuses if status.name == name), None)


def _is_group_of(pod: Object, ref: OwnerReference) -> bool:
    group, _, _ = ref.api_version.rpartition("/")
    if not isinstance(pod, Pod) or ref.kind != POD_GROUPS.kind or group != POD_GROUPS.gvr.group:
        return False
    return group_key(pod) == f"{pod.namespace}/{ref.name}"


def _kind(user: Pod | PodGroup) -> str:
    return POD_GROUPS.kind if isinstance(user, PodGroup) else PODS.kind


def _unsupported(user: Pod | PodGroup, entry: PodResourceClaim) -> str:
    what = "none of the supported fields are set"
    if isinstance(user, PodGroup):
        return f"PodGroup {user.key}, spec.resourceClaim {entry.name}: {what}"
    return f'pod "{user.key}", spec.resourceClaim "{entry.name}": {what}'
