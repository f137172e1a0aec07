"""Adopts orphans that a controller's selector matches, and releases children that it does not match any more."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from kcm_cli.api.resource import Resource
from kcm_cli.engine.execute import Executor
from kcm_cli.engine.writes import tell
from kcm_cli.machinery.labels import Selector
from kcm_cli.machinery.meta import Object
from kcm_cli.planning.actions import Failed, Mode, Stage
from kcm_cli.planning.claims import adopt_action, decide, release_action, release_remark
from kcm_cli.rest.errors import Invalid, NotFound

T = TypeVar("T", bound=Object)


class OwnerGone(Exception):
    """The owner in the cache has been deleted, or deleted and recreated under its name. It must adopt nothing."""

    reason = "OwnerGone"


class Claimed(msgspec.Struct, Generic[T], frozen=True):
    """What an owner controls. ``error``: the first write that failed. Then there may be more that it should control, so
    that it is too early to create or delete any, but not to report these."""

    members: list[T]
    error: Exception | None = None


class RefManager(msgspec.Struct, Generic[T], frozen=True):
    """Claims the children of one kind for the owners of another. upstream: PodControllerRefManager.

    finalizers: added to children that are adopted, removed from those that are released.
    """

    executor: Executor
    owners: Resource[Any]
    children: Resource[T]
    finalizers: tuple[str, ...] = ()

    async def claim(
        self,
        owner: Object,
        selector: Selector,
        candidates: Sequence[T],
        *,
        member: Callable[[T], bool] | None = None,
    ) -> Claimed[T]:
        """Adopt orphans that match, release children that do not; return what the owner controls now.

        ``member``: a condition besides the selector. Before anything is adopted the owner is read from the API server:
        one that is being deleted adopts nothing. Raises the error of that. A child that was deleted is no error.
        """
        claims = decide(owner, selector, candidates, member=member)
        if not claims.adopt and not claims.release:
            return Claimed(list(claims.kept))
        if claims.adopt:
            await self._recheck(owner)
        actions = tuple(
            adopt_action(self.owners, owner, self.children, obj, self.finalizers) for obj in claims.adopt
        ) + tuple(release_action(owner, self.children, obj, self.finalizers) for obj in claims.release)
        for obj in claims.release:
            tell(release_remark(self.owners, owner, self.children, obj))
        outcome = await self.executor.stage(Stage(actions, Mode.PARALLEL))
        adopted = {obj.name for obj in claims.adopt}
        lost: set[str] = set()
        error: Exception | None = None
        for failure in outcome.failed:
            name = _name(failure)
            lost.add(name)
            # A release is refused as invalid where the reference was removed already, or the object was recreated.
            released = isinstance(failure.error, Invalid) and name not in adopted
            if not released and not isinstance(failure.error, NotFound):
                error = error or failure.error
        return Claimed([*claims.kept, *(obj for obj in claims.adopt if obj.name not in lost)], error)

    async def _recheck(self, owner: Object) -> None:
        fresh = await self.executor.client.get(self.owners, owner.namespace, owner.name)
        if fresh.uid != owner.uid or fresh.deleting:
            raise OwnerGone(f"{self.owners.kind} {owner.key} is being deleted or was replaced: it adopts nothing")


def _name(failure: Failed) -> str:
    return getattr(failure.action, "name", "")
