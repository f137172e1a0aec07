"""Periodic passes over all objects, beside the workers.

If a pass fails, the error is logged and the next pass runs as usual.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from datetime import datetime
from typing import Generic, TypeVar

import msgspec

from kcm_cli.api.resource import Resource
from kcm_cli.component.clock import Clock
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.writes import tell
from kcm_cli.machinery.meta import Object
from kcm_cli.planning.actions import Remark
from kcm_cli.rest.errors import Conflict, NotFound
from kcm_cli.rest.transport import RequestError
from kcm_cli.runtime.cause_ring import CauseRing
from kcm_cli.runtime.causes import PASS, Causes, Tick, Work, set_working, working
from kcm_cli.runtime.turns import drained, in_turns

T = TypeVar("T", bound=Object)

log = logging.getLogger(__name__)

OBJECTS = 50
"""After so many objects of a pass other tasks run, also if the turn is not over."""
PASS_FAILED = "Pass failed, will retry with the next one"


class Loop(msgspec.Struct, frozen=True, kw_only=True):
    """Repeats ``step``, ``pause_s()`` seconds after it has ended; the first time after ``delay_s`` seconds.

    ``name``: the controller's name, for the log. ``failed``: the message where ``step`` raises. ``pause``: waits for so
    many seconds at most. ``ring``: records passes that write.
    """

    name: str
    clock: Clock
    step: Callable[[], Awaitable[None]]
    pause_s: Callable[[], float]
    delay_s: float = 0.0
    pause: Callable[[float], Awaitable[None]] | None = None
    failed: str = PASS_FAILED
    ring: CauseRing | None = None

    async def run(self) -> None:
        """Until cancelled."""
        await self.clock.sleep(self.delay_s)
        pause = self.pause or self.clock.sleep
        while True:
            await self._pass()
            await pause(self.pause_s())

    async def _pass(self) -> None:
        if self.ring is not None:
            causes, at = Causes([Tick(PASS)]), self.ring.now()
            set_working(
                Work(controller=self.name, queue="", kind="", key="", at=at, causes=causes, note=self.ring.note)
            )
        try:
            await self.step()
        except Exception as error:  # where the errors of a pass end, as those of a sync in the worker
            fields = {"controller": self.name, "err": str(error)}
            log.error(self.failed, extra={"fields": fields}, exc_info=error)
        finally:
            if self.ring is not None and (work := working()) is not None:
                self.ring.ended(work)


class ObjectFailed(msgspec.Struct, frozen=True):
    """How a failure with one object of a pass is logged: the message, and the field that names the object."""

    message: str
    key: str


OBJECT_FAILED = ObjectFailed("Object failed, will retry with the next pass", "key")


async def for_each(
    name: str,
    objects: Iterable[T],
    step: Callable[[T], Awaitable[None]],
    *,
    workers: int = 1,
    failed: ObjectFailed = OBJECT_FAILED,
) -> None:
    """Call ``step`` with each object, ``workers`` of them at once. Yields to the loop every OBJECTS objects, and when a
    turn is over.

    An error of one object is logged under ``name`` as ``failed``, and the pass continues.
    """
    found = list(objects)
    workers, left = min(workers, len(found)), drained(found)
    del objects, found

    async def work() -> None:
        async for obj in in_turns(left, OBJECTS):
            try:
                await step(obj)
            except Exception as error:  # where the errors of one object of a pass end, as those of a sync in the worker
                fields = {"controller": name, failed.key: obj.key, "err": str(error)}
                expected = isinstance(error, RequestError)
                log.error(failed.message, extra={"fields": fields}, exc_info=None if expected else error)

    async with asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(work())


class Cleaner(Generic[T]):
    """Deletes expired objects of a kind. ``is_over``: whether an object has expired at a given time. ``remark``: what
    is logged about a deleted one.

    An object that cannot be judged or deleted is left to the next pass. Deletions carry uid and version as a
    precondition: an object that was recreated under the same name is kept, and one that has changed since it was judged
    (a request was approved) is judged anew in the next pass.
    """

    def __init__(
        self,
        context: ControllerContext,
        resource: Resource[T],
        is_over: Callable[[T, datetime], bool],
        remark: Callable[[T, datetime], Remark | None] = lambda found, now: None,
        failed: ObjectFailed = OBJECT_FAILED,
    ) -> None:
        self._name, self._client, self._clock = context.name, context.client, context.clock
        self._resource = resource
        self._is_over = is_over
        self._remark, self._failed = remark, failed
        self._objects = context.cache(resource)

    async def clean(self) -> None:
        """One pass."""
        now = self._clock.now()

        async def judge(found: T) -> None:
            if self._is_over(found, now):
                version = found.metadata.resource_version
                with suppress(NotFound, Conflict):  # deleted by another client, another one of this name, or changed
                    await self._client.delete(
                        self._resource,
                        found.namespace,
                        found.name,
                        uid=found.uid,
                        resource_version=version,
                        reason="expired",
                    )
                    if (said := self._remark(found, now)) is not None:
                        tell(said)

        await for_each(self._name, self._objects.store.list(), judge, failed=self._failed)
