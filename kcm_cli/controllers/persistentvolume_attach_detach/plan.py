"""When a volume that no pod needs may be detached, and the Events about volumes that are or cannot be attached.

upstream: pkg/controller/volume/attachdetach/reconciler/reconciler.go
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum

from kcm_cli.api.core import PODS, ContainerStatus, Node, Pod
from kcm_cli.planning.actions import Notice, ref_to
from kcm_cli.planning.nodes import is_out_of_service, is_ready
from kcm_cli.planning.pods import is_terminal

MANAGED = "volumes.kubernetes.io/controller-managed-attach-detach"
LONGEST_UNMOUNT_S = 360.0
"""How long a node may take to unmount; after that, one that is not ready is taken for dead."""


class Detach(Enum):
    """Whether a volume is detached now. The values of forced ones label the metric."""

    WAIT = "wait"
    SAFELY = "safely"
    TIMEOUT = "timeout"
    OUT_OF_SERVICE = "out-of-service"

    @property
    def forced(self) -> bool:
        return self in (Detach.TIMEOUT, Detach.OUT_OF_SERVICE)


def plan_detach(node: Node | None, waited_s: float, *, mounted: bool, forces: bool = True) -> Detach:
    """Whether to detach a volume from a node where no pod needs it, for so many seconds.

    node: None for one that was deleted. forces: a node that does not unmount in time may be overruled.
    """
    late = waited_s > LONGEST_UNMOUNT_S and forces
    out_of_service = node is not None and is_out_of_service(node)
    ready = node is not None and is_ready(node)
    if mounted and not out_of_service and (ready or not late):
        return Detach.WAIT
    if late:
        return Detach.TIMEOUT
    return Detach.OUT_OF_SERVICE if out_of_service else Detach.SAFELY


def is_done(pod: Pod) -> bool:
    """Whether a pod needs its volumes no more: it has ended, or is being deleted and nothing of it runs."""
    status = pod.status
    if is_terminal(pod):
        return True
    everything = (*status.init_container_statuses, *status.container_statuses, *status.ephemeral_container_statuses)
    return pod.deleting and all(_stands_still(one) for one in everything)


def _stands_still(container: ContainerStatus) -> bool:
    state = container.state
    return state is not None and (state.terminated is not None or state.waiting is not None)


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
    """For pods whose volume is attached to another node, where other pods use it."""
    for pod in pods:
        text = f'Multi-Attach error for volume "{volume}" {_users(pod, users)}'
        yield Notice(ref_to(PODS, pod), "Warning", "FailedAttachVolume", text)


def _users(pod: Pod, users: Sequence[Pod]) -> str:
    """Names of pods in other namespaces are not shown."""
    if not users:
        return "Volume is already exclusively attached to one node and can't be attached to another"
    own = sorted(user.name for user in users if user.namespace == pod.namespace)
    others = len(users) - len(own)
    if not own:
        return f"Volume is already used by {others} pod(s) in different namespaces"
    text = f"Volume is already used by pod(s) {', '.join(own)}"
    return f"{text} and {others} pod(s) in different namespaces" if others else text
