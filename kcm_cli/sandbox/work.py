"""Workers of a queue: errors are logged, and keys retried with backoff."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextvars import ContextVar

import msgspec

from kcm_cli.rest.transport import RequestError
from kcm_cli.runtime.cause_ring import CauseRing
from kcm_cli.runtime.causes import Causes, Work, set_working, working
from kcm_cli.runtime.turns import Turns
from kcm_cli.runtime.workqueue import WorkQueue

log = logging.getLogger(__name__)
_NODE: ContextVar[str] = ContextVar("node", default="")


def act_for(node: str) -> None:
    """From now on, this task is the kubelet of a node: its requests are that kubelet's, and so is what it works on."""
    _NODE.set(node)
    if (work := working()) is not None:
        work.controller = f"kubelet of {node}"


def acting_node() -> str:
    """The node whose kubelet this task is; empty for none."""
    return _NODE.get()


class Record(msgspec.Struct, frozen=True):
    """Where a component's syncs are recorded, once they write. kind: of the objects that its keys name."""

    ring: CauseRing
    component: str
    kind: str

    def work(self, queue: str, key: str, why: Causes) -> Work:
        """A sync that begins."""
        ring = self.ring
        return Work(
            controller=self.component, queue=queue, kind=self.kind, key=key, at=ring.now(), causes=why, note=ring.note
        )


async def work_on(
    queue: WorkQueue, workers: int, sync: Callable[[str], Awaitable[None]], record: Record | None = None
) -> None:
    """Process keys until cancelled."""
    async with asyncio.TaskGroup() as group:
        for number in range(workers):
            group.create_task(_worker(queue, sync, record), name=f"{queue.name} {number}")


async def _worker(queue: WorkQueue, sync: Callable[[str], Awaitable[None]], record: Record | None) -> None:
    turns = Turns.of_loop()
    while True:
        key = await queue.get()
        turns.begin()
        work = record.work(queue.name, key, queue.taken_for) if record is not None else None
        set_working(work)
        try:
            await sync(key)
            queue.forget(key)
        except RequestError as error:
            log.info("Will try again", extra={"fields": {"queue": queue.name, "key": key, "err": str(error)}})
            queue.add_rate_limited(key)
        except Exception as error:  # where the errors of a sync end: one object costs the others nothing
            log.error("Failed, will try again", extra={"fields": {"queue": queue.name, "key": key}}, exc_info=error)
            queue.add_rate_limited(key)
        finally:
            queue.done(key)
            if record is not None and work is not None:
                record.ring.ended(work)
        if turns.is_over():  # many syncs send nothing, and so wait for nothing
            await asyncio.sleep(0)
