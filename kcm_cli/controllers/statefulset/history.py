"""Writes the revisions of StatefulSets: adopts, creates, renumbers and deletes ControllerRevisions.

A module of its own, since the answer to each write decides about the next: a taken name may belong to the wanted
revision.

upstream: pkg/controller/history/controller_history.go
"""

import msgspec

from kcm_cli.api.apps import CONTROLLER_REVISIONS, STATEFUL_SETS, ControllerRevision, StatefulSet
from kcm_cli.controllers.shared.revisions import Revisions, numbered
from kcm_cli.controllers.statefulset.plan import revisions as rules
from kcm_cli.controllers.statefulset.plan.revisions import Existing, Missing
from kcm_cli.controllers.statefulset.plan.snapshot import Revision
from kcm_cli.engine.claiming import RefManager
from kcm_cli.engine.execute import Executor
from kcm_cli.machinery.labels import Selector
from kcm_cli.machinery.meta import controller_of
from kcm_cli.machinery.names import LABEL_MAX
from kcm_cli.planning.revisions import in_order


class Found(msgspec.Struct, frozen=True):
    """The update revision, and the collision count after creating it."""

    update: Revision
    collisions: int


class History:
    """The revisions of all StatefulSets. upstream: realHistory."""

    def __init__(self, executor: Executor, revisions: Revisions) -> None:
        self._refs = RefManager(executor, STATEFUL_SETS, CONTROLLER_REVISIONS)
        self._revisions = revisions

    async def of(self, set_: StatefulSet, selector: Selector) -> list[ControllerRevision]:
        """The revisions that the set's selector matches, the oldest first. Orphans among them are adopted.

        Upstream gives a set of a long name revisions that no pod can have, since pods have the name in a label.
        """
        known = [one for one in self._revisions.candidates(set_) if len(one.name) <= LABEL_MAX]
        matching = in_order(revision for revision in known if selector.matches(revision.labels))
        orphans = [revision for revision in matching if controller_of(revision) is None]
        if orphans:
            claimed = await self._refs.claim(set_, selector, orphans)
            if claimed.error is not None:
                raise claimed.error
        return matching

    async def ensure(self, set_: StatefulSet, wanted: Existing | Missing) -> Found:
        """Create or renumber the wanted revision, so that it has the highest number. Also done for a set that is being
        deleted."""
        collisions = set_.status.collision_count or 0
        if isinstance(wanted, Existing):
            if wanted.number is not None:
                await self._revisions.change(wanted.revision, numbered(wanted.number))
            return Found(Revision(wanted.revision.name, set_.spec.template), collisions)
        return await self._create(set_, wanted, collisions)

    async def _create(self, set_: StatefulSet, missing: Missing, collisions: int) -> Found:
        first = collisions
        while True:
            name = rules.name_for(set_, missing.data, collisions)
            body = rules.body_of(set_, missing, first, name)
            if await self._revisions.create(set_, name, body, missing.data) is not None:
                return Found(Revision(name, set_.spec.template), collisions)
            collisions += 1
