"""Brings the revisions of StatefulSets into being: adopts, creates, renumbers and deletes ControllerRevisions.

A file of its own, since each of these is a conversation with the server whose answers decide what comes next: a
name that is taken may be taken by the very revision that is wanted.

upstream: pkg/controller/history/controller_history.go
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from kcm_cli.api.apps import CONTROLLER_REVISIONS, STATEFUL_SETS, ControllerRevision, StatefulSet
from kcm_cli.controllers.statefulset.plan import revisions as rules
from kcm_cli.controllers.statefulset.plan.revisions import Existing, Missing
from kcm_cli.controllers.statefulset.snapshot import Revision
from kcm_cli.engine import writes
from kcm_cli.engine.claiming import claim
from kcm_cli.engine.execute import Executor
from kcm_cli.engine.freshness import Consistency
from kcm_cli.machinery.labels import Selector
from kcm_cli.machinery.meta import controller_of
from kcm_cli.machinery.patches import equal
from kcm_cli.planning.actions import Delete, Path, Value
from kcm_cli.planning.revisions import in_order
from kcm_cli.rest.client import Client
from kcm_cli.rest.errors import AlreadyExists, NotFound
from kcm_cli.runtime.informer import Informer
from kcm_cli.runtime.store import CONTROLLER, orphans_of


@dataclass(frozen=True, slots=True)
class Found:
    """The revision of the template, and how many names were taken on the way to it."""

    update: Revision
    collisions: int


class History:
    """The revisions of all StatefulSets."""

    def __init__(
        self,
        client: Client,
        executor: Executor,
        informer: Informer[ControllerRevision],
        consistency: Consistency,
    ) -> None:
        self._client = client
        self._executor = executor
        self._informer = informer
        self._consistency = consistency

    async def of(self, set_: StatefulSet, selector: Selector) -> list[ControllerRevision]:
        """The set's revisions that its selector matches, the oldest first; orphans among them are adopted."""
        store = self._informer.store
        known = store.by_index(CONTROLLER, set_.uid) + store.by_index(CONTROLLER, orphans_of(set_.namespace))
        matching = in_order(revision for revision in known if selector.matches(revision.labels))
        orphans = [revision for revision in matching if controller_of(revision) is None]
        if orphans:
            await claim(self._executor, self._client, STATEFUL_SETS, set_, selector, orphans, CONTROLLER_REVISIONS)
        return matching

    async def realise(self, set_: StatefulSet, wanted: Existing | Missing) -> Found:
        """Make it so that the wanted revision exists and has the highest number.

        A set that is being deleted gets no new revision any more: it would only have to be collected again.
        """
        collisions = set_.status.collision_count or 0
        if isinstance(wanted, Existing):
            if wanted.number is not None and not set_.deleting:
                await self._renumber(set_, wanted.revision, wanted.number)
            return Found(Revision(wanted.revision.name, set_.spec.template), collisions)
        if set_.deleting:
            name = rules.name_for(set_, wanted.data, collisions)
            return Found(Revision(name, set_.spec.template), collisions)
        return await self._create(set_, wanted, collisions)

    async def prune(self, surplus: Sequence[ControllerRevision]) -> None:
        """Delete revisions that are not needed any more; one that is gone already is as good."""
        for revision in surplus:
            delete = Delete(CONTROLLER_REVISIONS, revision.namespace, revision.name, uid=revision.uid)
            with suppress(NotFound):
                await writes.delete(self._client, delete)

    async def _create(self, set_: StatefulSet, missing: Missing, collisions: int) -> Found:
        first = collisions
        while True:
            name = rules.name_for(set_, missing.data, collisions)
            body = rules.body_of(set_, missing, first, name)
            try:
                made = await self._client.create(CONTROLLER_REVISIONS, set_.namespace, body)
                self._consistency.wrote(set_.key, self._informer, made)
            except AlreadyExists:
                existing = await self._client.get(CONTROLLER_REVISIONS, set_.namespace, name)
                if not equal(existing.data, missing.data):
                    collisions += 1
                    continue
            return Found(Revision(name, set_.spec.template), collisions)

    async def _renumber(self, set_: StatefulSet, revision: ControllerRevision, number: int) -> None:
        def changes(current: ControllerRevision) -> dict[Path, Value]:
            return {("revision",): number} if current.revision != number else {}

        written = await writes.retry_on_conflict(self._client, CONTROLLER_REVISIONS, revision, changes)
        self._consistency.wrote(set_.key, self._informer, written)
