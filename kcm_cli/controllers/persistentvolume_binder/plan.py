"""The decisions about a claim and about a volume.

upstream: pkg/controller/volume/persistentvolume/pv_controller.go#syncUnboundClaim, syncBoundClaim, syncVolume
"""

from enum import Enum

import msgspec

from kcm_cli.api.core import PersistentVolumeClaim
from kcm_cli.api.storage import PersistentVolume
from kcm_cli.planning.volumes.classes import class_of_claim
from kcm_cli.planning.volumes.matching import points_to, same_mode, why_unsatisfied
from kcm_cli.planning.volumes.names import BIND_COMPLETED, BOUND_BY_CONTROLLER, PROVISIONED_BY, SELECTED_NODE

NORMAL, WARNING = "Normal", "Warning"
NO_CLASS = "no persistent volumes available for this claim and no storage class is set"
NO_CONSUMER = "waiting for first consumer to be created before binding"
LOST_POINTER = "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"
LOST_VOLUME = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
MISBOUND = "Two claims are bound to the same volume, this one is bound incorrectly"
ENDED = ("Released", "Failed")


class Snapshot(msgspec.Struct, frozen=True):
    """The state for a decision about a claim.

    volume: the volume that the claim names or, if it names none, the best match. delayed: the claim waits for a pod.
    default: the name of the default class, for a claim without a class. waiting_pods: the unscheduled pods that use the
    claim. attributes_classes: gate VolumeAttributesClass.
    """

    claim: PersistentVolumeClaim
    volume: PersistentVolume | None = None
    delayed: bool = False
    default: str = ""
    waiting_pods: tuple[str, ...] = ()
    attributes_classes: bool = True


class Event(msgspec.Struct, frozen=True):
    """An Event about the claim or volume."""

    type: str
    reason: str
    message: str


# -- claims


class Bind(msgspec.Struct, frozen=True):
    """Bind the claim to this volume. ``found``: the volume was matched, not named by the claim."""

    volume: PersistentVolume
    found: bool = False


class Pend(msgspec.Struct, frozen=True):
    """Leave the claim pending, and emit the Event."""

    event: Event | None = None


class AssignClass(msgspec.Struct, frozen=True):
    """Set the default class, which did not exist when the claim was created."""

    name: str


class Provision(msgspec.Struct, frozen=True):
    """Provision a volume for the claim."""


class Lose(msgspec.Struct, frozen=True):
    """Mark the claim as Lost, which is final."""

    event: Event


class Refuse(msgspec.Struct, frozen=True):
    """Another client removed half of a binding. The sync fails."""

    event: Event
    why: str


ClaimDecision = Bind | Pend | AssignClass | Provision | Lose | Refuse


def plan_claim(snapshot: Snapshot) -> ClaimDecision:
    """Decide about a claim."""
    if BIND_COMPLETED in snapshot.claim.annotations:
        return _bound(snapshot)
    if snapshot.claim.spec.volume_name:
        return _named(snapshot)
    return _any(snapshot)


def _bound(snapshot: Snapshot) -> ClaimDecision:
    """Decide about a claim that was bound before."""
    claim, volume = snapshot.claim, snapshot.volume
    if not claim.spec.volume_name:
        return Lose(Event(WARNING, "ClaimLost", LOST_POINTER))
    if volume is None:
        return Lose(Event(WARNING, "ClaimLost", LOST_VOLUME))
    ref = volume.spec.claim_ref
    if ref is None or ref.uid == claim.uid:
        return Bind(volume)
    return Lose(Event(WARNING, "ClaimMisbound", MISBOUND))


def _named(snapshot: Snapshot) -> ClaimDecision:
    """Decide about a claim that names a volume."""
    claim, volume = snapshot.claim, snapshot.volume
    if volume is None:
        return Pend()
    ref = volume.spec.claim_ref
    if ref is None:
        why = why_unsatisfied(volume, claim, attributes_classes=snapshot.attributes_classes)
        text = f'Cannot bind to requested volume "{volume.name}": {why}'
        return Pend(Event(WARNING, "VolumeMismatch", text)) if why else Bind(volume)
    if points_to(volume, claim):
        return Bind(volume)
    event = Event(WARNING, "FailedBinding", f'volume "{volume.name}" already bound to a different claim.')
    if BOUND_BY_CONTROLLER not in claim.annotations:
        return Pend(event)
    other = f"{ref.namespace}/{ref.name}"
    named = f'invalid binding of claim "{claim.key}" to volume "{volume.name}"'
    return Refuse(event, f'{named}: volume already claimed by "{other}"')


def _any(snapshot: Snapshot) -> ClaimDecision:
    """Decide about a claim that takes any matching volume."""
    claim = snapshot.claim
    if snapshot.volume is not None:
        return Bind(snapshot.volume, found=True)
    if snapshot.default:
        return AssignClass(snapshot.default)
    if snapshot.delayed and SELECTED_NODE not in claim.annotations:
        return Pend(_no_node(snapshot.waiting_pods))
    if class_of_claim(claim):
        return Provision()
    return Pend(Event(NORMAL, "FailedBinding", NO_CLASS))


def _no_node(pods: tuple[str, ...]) -> Event:
    if not pods:
        return Event(NORMAL, "WaitForFirstConsumer", NO_CONSUMER)
    noun = "pods" if len(pods) > 1 else "pod"
    return Event(NORMAL, "WaitForPodScheduled", f"waiting for {noun} {','.join(pods)} to be scheduled")


# -- volumes


class SetPhase(msgspec.Struct, frozen=True):
    """Set the volume's phase."""

    phase: str


class Reclaim(msgspec.Struct, frozen=True):
    """Release the volume, because its claim was deleted or has another volume, and reclaim it by its policy."""

    announced: bool
    """The volume is Released or Failed already, and keeps its phase."""


class Simple(Enum):
    """Decisions without parameters."""

    ASK = "ask the server for the claim"
    CLAIM_FIRST = "have the claim looked at"
    UNBIND = "unbind"


class Mismatch(msgspec.Struct, frozen=True):
    """The claim that the volume is reserved for cannot use it. Emit Events on both."""

    volume: Event
    claim: Event


VolumeDecision = SetPhase | Reclaim | Simple | Mismatch


def plan_volume(
    volume: PersistentVolume, claim: PersistentVolumeClaim | None, *, asked: bool = False
) -> VolumeDecision:
    """Decide about a volume. ``claim``: the claim of its claimRef's name. ``asked``: the claim was read from the API
    server; the cache may not have a claim yet that a volume was created for."""
    ref = volume.spec.claim_ref
    if ref is None or not ref.uid:
        return SetPhase("Available")
    ended = volume.status.phase in ENDED
    if claim is None or claim.uid != ref.uid:
        return Reclaim(ended) if ended or asked else Simple.ASK
    if not claim.spec.volume_name:
        return Simple.CLAIM_FIRST if same_mode(volume, claim) else _mismatch(volume, claim)
    if claim.spec.volume_name == volume.name:
        return SetPhase("Bound")
    made_for_it = PROVISIONED_BY in volume.annotations
    if made_for_it and volume.spec.persistent_volume_reclaim_policy == "Delete":
        return Reclaim(ended)
    return Simple.UNBIND


def is_settled(volume: PersistentVolume, claim: PersistentVolumeClaim | None) -> bool:
    """Whether a volume needs no work until it or its claim changes."""
    decision = plan_volume(volume, claim)
    if isinstance(decision, SetPhase):
        return decision.phase == volume.status.phase
    return decision == Reclaim(announced=True) and volume.spec.persistent_volume_reclaim_policy == "Retain"


def is_released(volume: PersistentVolume, claim: PersistentVolumeClaim | None) -> bool:
    """Whether a volume may be recycled or deleted: the claim of its claimRef was deleted, or has another volume."""
    ref = volume.spec.claim_ref
    if ref is None or not ref.uid:
        return False
    if claim is None or claim.uid != ref.uid:
        return True
    return bool(claim.spec.volume_name) and claim.spec.volume_name != volume.name


def _mismatch(volume: PersistentVolume, claim: PersistentVolumeClaim) -> Mismatch:
    because = "due to incompatible volumeMode."
    of_volume = f'Cannot bind PersistentVolume to requested PersistentVolumeClaim "{claim.name}" {because}'
    of_claim = f'Cannot bind PersistentVolume "{volume.name}" to requested PersistentVolumeClaim {because}'
    return Mismatch(Event(WARNING, "VolumeMismatch", of_volume), Event(WARNING, "VolumeMismatch", of_claim))
