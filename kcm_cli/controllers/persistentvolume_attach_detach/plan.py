"""Decides whether to attach a volume to a node or to detach it, and which Events to emit.

upstream: pkg/controller/volume/attachdetach/reconciler/reconciler.go
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum

import msgspec

from kcm_cli.api.core import PODS, Node, Pod
from kcm_cli.planning.actions import Notice, ref_to
from kcm_cli.planning.nodes import is_out_of_service, is_ready

MANAGED = "volumes.kubernetes.io/controller-managed-attach-detach"
MAX_UNMOUNT_S = 360.0
"""How long a node may take to unmount (upstream: maxWaitForUnmountDuration); after that, one that is not ready is
taken for dead."""
A_MOMENT_S = 0.1
UNDECODABLE_S = 60.0
"""After this time volumes are looked at again that pods may need which cannot be decoded."""


# -- detaching


class UnneededVolume(msgspec.Struct, frozen=True):
    """A volume that is, or may be, attached to a node where no known pod needs it.

    known_plugin: False for volumes of other plugins, which are left as they are. pending: an operation is pending that
    excludes a detach. backoff_s: the rest of the backoff of a failed detach. may_be_needed: by a pod that cannot be
    decoded. node: None if it was deleted. mounted: according to the node's status. waited_s: the seconds since a detach
    was requested. force_on_timeout: detach by force if the node does not unmount in time.
    """

    known_plugin: bool
    pending: bool
    backoff_s: float
    may_be_needed: bool
    node: Node | None
    mounted: bool
    waited_s: float
    force_on_timeout: bool


class Detach(Enum):
    """How to detach a volume. The values of forced detaches are labels of the metric."""

    NO = "no"
    """Do not detach. The node's time to unmount does not start."""
    WAIT = "wait"
    """Wait until the node has unmounted it."""
    SAFELY = "safely"
    TIMEOUT = "timeout"
    OUT_OF_SERVICE = "out-of-service"

    @property
    def forced(self) -> bool:
        return self in (Detach.TIMEOUT, Detach.OUT_OF_SERVICE)


def plan_detach(volume: UnneededVolume) -> tuple[Detach, float | None]:
    """How to detach a volume, and the seconds until the next check; None: at the next change."""
    if not volume.known_plugin or volume.pending:
        return Detach.NO, None
    if volume.may_be_needed:
        return Detach.NO, UNDECODABLE_S
    if volume.backoff_s > 0:
        return Detach.NO, volume.backoff_s
    node = volume.node
    late = volume.waited_s > MAX_UNMOUNT_S and volume.force_on_timeout
    out_of_service = node is not None and is_out_of_service(node)
    ready = node is not None and is_ready(node)
    if volume.mounted and not out_of_service and (ready or not late):
        left_s = MAX_UNMOUNT_S - volume.waited_s
        return Detach.WAIT, left_s + A_MOMENT_S if volume.force_on_timeout and left_s >= 0 else None
    if late:
        return Detach.TIMEOUT, None
    return (Detach.OUT_OF_SERVICE if out_of_service else Detach.SAFELY), None


# -- attaching


class NeededVolume(msgspec.Struct, frozen=True):
    """A volume that pods need on a node.

    pending: an operation is pending that excludes an attach. attached: to this node. in_use_elsewhere: it can be
    attached to one node only, and is attached to another one. backoff_s: the rest of the backoff of a failed attach.
    """

    pending: bool
    attached: bool
    in_use_elsewhere: bool
    backoff_s: float


class Attach(Enum):
    """The decision about a needed volume."""

    NO = "no"
    ATTACHED = "attached"
    MULTI_ATTACH_ERROR = "multi-attach error"
    """It can be attached to one node only, and is attached to another one. Its pods get an Event once."""
    START = "start"


def plan_attach(volume: NeededVolume) -> tuple[Attach, float | None]:
    """The decision, and the seconds until the next check; None: at the next change."""
    if volume.pending:
        return Attach.NO, None
    if volume.attached:
        return Attach.ATTACHED, None
    if volume.in_use_elsewhere:
        return Attach.MULTI_ATTACH_ERROR, None
    return (Attach.NO, volume.backoff_s) if volume.backoff_s > 0 else (Attach.START, None)


# -- Events


def attached(pods: Iterable[Pod], volume: str) -> Iterator[Notice]:
    for pod in pods:
        text = f'AttachVolume.Attach succeeded for volume "{volume}" '
        yield Notice(ref_to(PODS, pod), "Normal", "SuccessfulAttachVolume", text)


def not_attached(pods: Iterable[Pod], volume: str, error: Exception) -> Iterator[Notice]:
    for pod in pods:
        text = f'AttachVolume.Attach failed for volume "{volume}" : {error}'
        yield Notice(ref_to(PODS, pod), "Warning", "FailedAttachVolume", text)


def attached_elsewhere(pods: Iterable[Pod], volume: str, users: Sequence[Pod]) -> Iterator[Notice]:
    """Events on pods whose volume is attached to another node. ``users``: the pods that use it there."""
    for pod in pods:
        text = f'Multi-Attach error for volume "{volume}" {_users(pod, users)}'
        yield Notice(ref_to(PODS, pod), "Warning", "FailedAttachVolume", text)


def _users(pod: Pod, users: Sequence[Pod]) -> str:
    """The text about the pods that use a volume. Names of pods in other namespaces are not shown."""
    if not users:
        return "Volume is already exclusively attached to one node and can't be attached to another"
    own = sorted(user.name for user in users if user.namespace == pod.namespace)
    others = len(users) - len(own)
    if not own:
        return f"Volume is already used by {others} pod(s) in different namespaces"
    text = f"Volume is already used by pod(s) {', '.join(own)}"
    return f"{text} and {others} pod(s) in different namespaces" if others else text
