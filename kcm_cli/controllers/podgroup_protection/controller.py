"""podgroup-protection-controller: keeps a deleted PodGroup, by a finalizer, while one of its pods may run.

upstream: pkg/controller/scheduling/podgroupprotection
"""

from kcm_cli.api.core import PODS, Pod
from kcm_cli.api.scheduling import POD_GROUPS, PodGroup
from kcm_cli.controllers.shared.live import LiveUsers
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Keys, Queue, Watch, only, starting
from kcm_cli.engine.worker import unhandled
from kcm_cli.planning.pods import is_terminal
from kcm_cli.planning.protection import is_held, release
from kcm_cli.planning.resource_claims import group_key, member_of

FINALIZER = "scheduling.k8s.io/podgroup-protection"
"""Admission gives it to new groups."""
_ACTIVE = "active pods by pod group"
AGAIN_S = 60.0
"""When to look again at a group that may have a pod which cannot be decoded, or has one that the cache does not
show."""


def active_member_of(pod: Pod) -> tuple[str, ...]:
    """The index function: the PodGroup of a pod that has not ended."""
    return () if is_terminal(pod) else member_of(pod)


class PodGroupProtectionController:
    """Keys are PodGroups."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        (self._queue,) = context.queues
        self._groups = context.cache(POD_GROUPS)
        self._pods = context.cache(PODS)
        self._pods.store.add_index(_ACTIVE, active_member_of)
        self._members = LiveUsers(self._client, PODS, active_member_of)

    async def sync(self, key: str) -> float | None:
        try:
            return await self._sync(key)
        finally:
            if not len(self._queue):
                self._members.clear()  # no other group needs the lists

    async def _sync(self, key: str) -> float | None:
        group = self._groups.store.get(key)
        if group is None or not is_held(group, FINALIZER) or self._pods.store.by_index(_ACTIVE, key):
            return None
        if self._pods.store.unseen(group.namespace):
            return AGAIN_S  # a pod that cannot be decoded may be one of any group
        if await self._members.find(key, group, group.namespace) is not None:
            return AGAIN_S
        await writes.send(self._client, release(POD_GROUPS, group, FINALIZER))
        return None

    def group_of_ended(self, pod: Pod) -> Keys:
        """The key of the group of a pod that has ended."""
        return self.group_of(pod) if is_terminal(pod) else ()

    def group_of(self, pod: Pod) -> Keys:
        """The key of the group of a deleted pod."""
        key = group_key(pod)
        return (key,) if key else ()


def is_ending(group: PodGroup) -> bool:
    """Whether the group is being deleted and has the finalizer."""
    return is_held(group, FINALIZER)


CONTROLLER = Controller(
    PodGroupProtectionController,
    Queue(
        "podgroupprotection",
        Watch(POD_GROUPS, changed=only(is_ending)),
        watches=(
            Watch(
                PODS, changed=PodGroupProtectionController.group_of_ended, deleted=PodGroupProtectionController.group_of
            ),
        ),
        sync=PodGroupProtectionController.sync,
        failures=unhandled("PodGroup {key} failed with: {error}"),
    ),
    announces=starting("PodGroup protection controller"),
)
