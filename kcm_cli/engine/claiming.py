"""Adopts the orphans that a controller's selector matches, and releases the children that it matches no more."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from kcm_cli.api.resource import Resource
from kcm_cli.engine.door import Door
from kcm_cli.engine.execute import Executor
from kcm_cli.machinery.labels import Selector
from kcm_cli.machinery.meta import Object
from kcm_cli.planning.actions import Failed, Mode, Stage
from kcm_cli.planning.claims import adopt_action, decide, release_action
from kcm_cli.rest.errors import Invalid, NotFound

T = TypeVar("T", bound=Object)


class OwnerGone(Exception):
    """The owner in the cache has been deleted, or deleted and recreated under its name. It must adopt nothing."""

    reason = "OwnerGone"


async def claim(  # noqa: PLR0913  # what is claimed, for whom, and how
    executor: Executor,
    resource: Resource[Any],
    owner: Object,
    selector: Selector,
    candidates: Sequence[T],
    child: Resource[T],
    *,
    member: Callable[[T], bool] | None = None,
    finalizers: tuple[str, ...] = (),
) -> list[T]:
    """Adopt matching orphans, release what no longer matches; return what the owner controls now.

    ``finalizers`` are given to what is adopted and taken from what is released. Before anything is adopted the
    owner is read afresh: one that is being deleted adopts nothing. Raises the first failure that is not the child's
    own disappearance.
    """
    claims = decide(owner, selector, candidates, member=member)
    if not claims.adopt and not claims.release:
        return list(claims.kept)
    if claims.adopt:
        await _recheck(executor.client, resource, owner)
    actions = tuple(adopt_action(resource, owner, child, obj, finalizers) for obj in claims.adopt) + tuple(
        release_action(owner, child, obj, finalizers) for obj in claims.release
    )
    outcome = await executor.stage(Stage(actions, Mode.PARALLEL))
    adopted = {obj.name for obj in claims.adopt}
    lost: set[str] = set()
    for failure in outcome.failed:
        name = _name(failure)
        lost.add(name)
        # A release is refused as invalid where the reference was removed already, or the object was recreated.
        released = isinstance(failure.error, Invalid) and name not in adopted
        if not released and not isinstance(failure.error, NotFound):
            raise failure.error
    return [*claims.kept, *(obj for obj in claims.adopt if obj.name not in lost)]


async def _recheck(client: Door, resource: Resource[Any], owner: Object) -> None:
    fresh = await client.get(resource, owner.namespace, owner.name)
    if fresh.uid != owner.uid or fresh.deleting:
        raise OwnerGone(f"{resource.kind} {owner.key} is being deleted or was replaced: it adopts nothing")


def _name(failure: Failed) -> str:
    return getattr(failure.action, "name", "")
