"""Workers of a queue: errors are logged, and keys retried with backoff."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from kcm_cli.rest.transport import RequestError
from kcm_cli.runtime.workqueue import WorkQueue

log = logging.getLogger(__name__)


async def work_on(queue: WorkQueue, workers: int, sync: Callable[[str], Awaitable[None]]) -> None:
    """Process keys until cancelled."""
    async with asyncio.TaskGroup() as group:
        for number in range(workers):
            group.create_task(_worker(queue, sync), name=f"{queue.name} {number}")


async def _worker(queue: WorkQueue, sync: Callable[[str], Awaitable[None]]) -> None:
    while True:
        key = await queue.get()
        try:
            await sync(key)
            queue.forget(key)
        except RequestError as error:
            log.info("Will try again", extra={"fields": {"queue": queue.name, "key": key, "err": str(error)}})
            queue.add_rate_limited(key)
        finally:
            queue.done(key)
