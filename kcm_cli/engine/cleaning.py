"""Deletes expired objects of a kind, in passes over its cache.

An object that cannot be deleted is left to the next pass. Deletions carry the uid as a precondition, so that an object
recreated under the same name is kept.
"""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Generic, TypeVar

from kcm_cli.api.resource import Resource
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.resync import for_each
from kcm_cli.machinery.meta import Object
from kcm_cli.rest.errors import Conflict, NotFound

T = TypeVar("T", bound=Object)


class Cleaner(Generic[T]):
    """``is_over``: whether an object has expired at a given time."""

    def __init__(
        self, context: ControllerContext, resource: Resource[T], is_over: Callable[[T, datetime], bool]
    ) -> None:
        self._name, self._client, self._clock = context.name, context.client, context.clock
        self._resource = resource
        self._is_over = is_over
        self._objects = context.cache(resource)

    async def clean(self) -> None:
        """One pass. An object that cannot be judged or deleted does not stop the pass."""
        now = self._clock.now()

        async def judge(found: T) -> None:
            if self._is_over(found, now):
                await self._delete(found)

        await for_each(self._name, self._objects.store.list(), judge)

    async def _delete(self, found: T) -> None:
        with suppress(NotFound, Conflict):  # deleted by another client, or another one of this name
            await self._client.delete(self._resource, found.namespace, found.name, uid=found.uid)
