"""Writes the revisions of a DaemonSet: adopts, labels, creates, renumbers, deduplicates and deletes them.

These writes are not part of the plan, since the answer to each of them decides about the next, and the snapshot has the
hash of the current revision.

upstream: pkg/controller/daemon/update.go#constructHistory
"""

import logging
from collections.abc import Sequence

import msgspec

from kcm_cli.api.apps import CONTROLLER_REVISIONS, DAEMON_SETS, ControllerRevision, DaemonSet
from kcm_cli.api.core import PODS, Pod
from kcm_cli.component.logs import V2
from kcm_cli.controllers.daemonset.plan import history as rules
from kcm_cli.controllers.daemonset.plan.history import Histories
from kcm_cli.controllers.shared.revisions import Revisions, numbered
from kcm_cli.engine import writes
from kcm_cli.engine.claiming import RefManager
from kcm_cli.engine.door import Door
from kcm_cli.engine.execute import Executor
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.errors import SyncError
from kcm_cli.machinery.kref import kobj
from kcm_cli.machinery.labels import Selector
from kcm_cli.planning.actions import MERGE, Patch, Path, Update, Value
from kcm_cli.planning.revisions import POD_HASH_LABEL

log = logging.getLogger(__name__)


class HashCollision(SyncError):
    """The name of the new revision is taken by another one. The next sync tries another name."""


class History(msgspec.Struct, frozen=True):
    """The hash of the current revision, and the old revisions."""

    hash: str
    old: tuple[ControllerRevision, ...]


class RevisionHistory:
    """The ControllerRevisions of all DaemonSets."""

    def __init__(self, client: Door, executor: Executor, revisions: Revisions) -> None:
        self._client = client
        self._refs = RefManager(executor, DAEMON_SETS, CONTROLLER_REVISIONS)
        self._revisions = revisions

    async def of(self, daemon_set: DaemonSet, selector: Selector, pods: Sequence[Pod]) -> History:
        """The history. The current revision is created, renumbered and deduplicated where necessary."""
        claimed = await self._refs.claim(daemon_set, selector, self._revisions.candidates(daemon_set))
        if claimed.error is not None:
            raise claimed.error
        revisions = [await self._labelled(found) for found in claimed.members]
        found = rules.sort_out(daemon_set, revisions)
        if not found.current:
            current = await self._create(daemon_set, found)
        else:
            current = await self._single(found, pods)
            if current.revision < found.number:
                await self._revisions.change(current, numbered(found.number))
        return History(rules.hash_of(current), found.old)

    async def _labelled(self, revision: ControllerRevision) -> ControllerRevision:
        """The revision with a hash label. Those of the first Kubernetes versions have none; their name serves as the
        hash."""
        if POD_HASH_LABEL in revision.labels:
            return revision
        return await self._revisions.change(revision, _label)

    async def _create(self, daemon_set: DaemonSet, found: Histories) -> ControllerRevision:
        name, body = rules.name_and_body(daemon_set, found.data, found.number)
        made = await self._revisions.create(daemon_set, name, body, found.data)
        if made is None:
            await self._count_collision(daemon_set)
            raise HashCollision(f"ControllerRevision {daemon_set.namespace}/{name} has other data, or another owner")
        return made

    async def _count_collision(self, daemon_set: DaemonSet) -> None:
        """Raise status.collisionCount, which changes the name of the next revision."""
        fresh = await self._client.get(DAEMON_SETS, daemon_set.namespace, daemon_set.name)
        if fresh.uid != daemon_set.uid:
            raise HashCollision(f"DaemonSet {daemon_set.key} in the cache was replaced by another one of its name")
        if fresh.status.collision_count != daemon_set.status.collision_count:
            raise HashCollision(f"DaemonSet {daemon_set.key} in the cache has an old collision count")
        count = (fresh.status.collision_count or 0) + 1
        fields = {"daemonset": kobj(daemon_set), "collisionCount": count}
        text = "Found a hash collision for DaemonSet - bumping collisionCount to resolve it"
        log.log(V2, text, extra={"fields": fields})
        changes: dict[Path, Value] = {("status", "collisionCount"): count}
        await writes.send(self._client, Update(DAEMON_SETS, fresh, changes, "status"))

    async def _single(self, found: Histories, pods: Sequence[Pod]) -> ControllerRevision:
        """The current revision. Of several, one is kept: the pods of the others get its hash, and the others are
        deleted. Upstream marks the pods of all revisions with it, so that old ones are never updated."""
        kept = rules.to_keep(found.current)
        if len(found.current) == 1:
            return kept
        hash_ = rules.hash_of(kept)
        twins = {rules.hash_of(revision) for revision in found.current} - {hash_}
        for pod in pods:
            if pod.labels.get(POD_HASH_LABEL, "") in twins:
                body: Doc = {"metadata": {"uid": pod.uid, "labels": {POD_HASH_LABEL: hash_}}}
                patch = Patch(PODS, pod.namespace, pod.name, body, MERGE, reason="hash of its revision changed")
                await writes.send(self._client, patch)
        await self._revisions.delete(revision for revision in found.current if revision.name != kept.name)
        return kept


def _label(revision: ControllerRevision) -> dict[Path, Value]:
    if POD_HASH_LABEL in revision.labels:
        return {}
    return {("metadata", "labels"): {**revision.labels, POD_HASH_LABEL: revision.name}}
