"""Writes the ControllerRevisions of DaemonSets and StatefulSets.

upstream: pkg/controller/history/controller_history.go
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from kcm_cli.api.apps import CONTROLLER_REVISIONS, ControllerRevision
from kcm_cli.engine import writes
from kcm_cli.engine.door import Door
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import Object, controller_of
from kcm_cli.machinery.same import same
from kcm_cli.planning.actions import Delete, Path, Value
from kcm_cli.rest.errors import AlreadyExists, NotFound
from kcm_cli.runtime.informer import Informer
from kcm_cli.runtime.store import CONTROLLER_UID, by_controller, claimable

Changes = Callable[[ControllerRevision], Mapping[Path, Value]]


class Revisions:
    """The revisions of all owners of one kind."""

    def __init__(self, client: Door, informer: Informer[ControllerRevision]) -> None:
        self._client = client
        self._store = informer.store
        informer.store.add_index(CONTROLLER_UID, by_controller)

    def candidates(self, owner: Object) -> list[ControllerRevision]:
        """The revisions that the owner controls, and the orphans in its namespace."""
        return claimable(self._store, owner)

    async def create(self, owner: Object, name: str, body: bytes, data: Doc) -> ControllerRevision | None:
        """Create a revision. Returns an existing one of this name if its data is equal and no other object controls it,
        else None. That of a former owner, whose name may be the same, goes with that."""
        try:
            return await self._client.create(
                CONTROLLER_REVISIONS, owner.namespace, body, reason="no revision has the template"
            )
        except AlreadyExists:
            existing = await self._client.get(CONTROLLER_REVISIONS, owner.namespace, name)
            ref = controller_of(existing)
            free = ref is None or ref.uid == owner.uid
            return existing if free and same(existing.data, data) else None

    async def change(self, revision: ControllerRevision, changes: Changes) -> ControllerRevision:
        """Write the changes, which are computed again after a conflict. Returns the updated revision."""
        return await writes.retry_on_conflict(
            self._client, CONTROLLER_REVISIONS, revision, changes, reason="revision is current again"
        )

    async def delete(self, revisions: Iterable[ControllerRevision]) -> None:
        """Delete revisions. NotFound counts as deleted."""
        for revision in revisions:
            delete = Delete(
                CONTROLLER_REVISIONS,
                revision.namespace,
                revision.name,
                uid=revision.uid,
                reason="beyond revisionHistoryLimit",
            )
            with suppress(NotFound):
                await writes.send(self._client, delete)


def numbered(number: int) -> Changes:
    """Changes that set the number of a revision."""
    return lambda revision: {("revision",): number} if revision.revision != number else {}
