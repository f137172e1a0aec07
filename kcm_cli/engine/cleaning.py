"""Deletes the objects of a kind that have been kept for long enough, in passes over its cache.

What cannot be deleted is left to the next pass; an object made again under a name is never taken for the old one.
"""

import logging
from collections.abc import Callable
from datetime import datetime
from typing import Generic, TypeVar

from kcm_cli.api.resource import Resource
from kcm_cli.engine.context import ControllerContext, Runnable
from kcm_cli.engine.resync import Loop
from kcm_cli.machinery.meta import Object
from kcm_cli.rest.errors import Conflict, NotFound
from kcm_cli.rest.transport import RequestError

log = logging.getLogger(__name__)
T = TypeVar("T", bound=Object)


class Cleaner(Generic[T]):
    """``is_over``: whether an object can go at a moment."""

    def __init__(
        self, context: ControllerContext, resource: Resource[T], is_over: Callable[[T, datetime], bool]
    ) -> None:
        self._name, self._client, self._clock = context.name, context.client, context.clock
        self._resource = resource
        self._is_over = is_over
        self._objects = context.informers.get(resource)

    def every(self, period_s: float) -> Runnable:
        """The passes: one when the cache is full, and one in each period."""
        return Loop(
            name=self._name,
            clock=self._clock,
            step=self.clean,
            pause_s=lambda: period_s,
            waits_for=(self._objects,),
        )

    async def clean(self) -> None:
        """One pass."""
        now = self._clock.now()
        for found in [found for found in self._objects.store if self._is_over(found, now)]:
            try:
                await self._client.delete(self._resource, found.namespace, found.name, uid=found.uid)
            except (NotFound, Conflict):
                continue  # gone, or another one of this name
            except RequestError as error:
                fields = {"controller": self._name, "key": found.key, "err": str(error)}
                log.error("Could not delete what has been kept for long enough", extra={"fields": fields})
