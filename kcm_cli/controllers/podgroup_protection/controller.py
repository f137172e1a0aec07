"""podgroup-protection-controller: a PodGroup that is deleted stays until none of its pods can run any more.

upstream: pkg/controller/scheduling/podgroupprotection
"""

from kcm_cli.api.core import PODS, Pod
from kcm_cli.api.scheduling import POD_GROUPS, PodGroup
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext, Runnable
from kcm_cli.planning.pods import is_terminal
from kcm_cli.planning.protection import is_held, release
from kcm_cli.planning.resource_claims import group_key, member_of

FINALIZER = "scheduling.k8s.io/podgroup-protection"
"""Admission gives it to new groups."""
_ACTIVE = "active pods by pod group"
AGAIN_S = 60.0
"""When to look again at a group that a pod may be in which cannot be decoded."""


def active_member_of(pod: Pod) -> tuple[str, ...]:
    """Index: the PodGroup of a pod that has not ended."""
    return () if is_terminal(pod) else member_of(pod)


def build(context: ControllerContext) -> Runnable:
    controller = PodGroupProtectionController(context)
    return context.worker(controller.queue, controller.sync, count=1, waits_for=controller.informers)


class PodGroupProtectionController:
    """Keys are PodGroups."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self.queue = context.queue("podgroupprotection")
        self._groups = context.informers.get(POD_GROUPS)
        self._pods = context.informers.get(PODS)
        self.informers = (self._groups, self._pods)
        self._pods.store.add_index(_ACTIVE, active_member_of)
        self._groups.listen(on_add=self._group, on_update=lambda old, new: self._group(new))
        self._pods.listen(on_add=self._pod, on_update=lambda old, new: self._pod(new), on_delete=self._freed)

    async def sync(self, key: str) -> float | None:
        group = self._groups.store.get(key)
        if group is None or not is_held(group, FINALIZER) or self._pods.store.by_index(_ACTIVE, key):
            return None
        if self._pods.store.unseen(group.namespace):
            return AGAIN_S  # a pod that cannot be decoded may be one of any group
        await writes.update(self._client, release(POD_GROUPS, group, FINALIZER))
        return None

    # -- events

    def _group(self, group: PodGroup) -> None:
        if is_held(group, FINALIZER):
            self.queue.add(group.key)

    def _pod(self, pod: Pod) -> None:
        if is_terminal(pod):
            self._freed(pod)

    def _freed(self, pod: Pod) -> None:
        key = group_key(pod)
        if key:
            self.queue.add(key)
