"""A warm standby: caches are filled and followed while another manager holds the lease.

No queue is filled and nothing is written: controllers are built on the caches after the lease was acquired, and hear of
all objects then. A cache does not count as synced again before it shows what was written up to that moment, so that
each controller sees the last writes of the former leader. Back-offs and expectations start anew.

upstream: none. Asked for in kubernetes#141221.
"""

import logging
from collections.abc import Awaitable, Callable

from kcm_cli.component.clock import Clock
from kcm_cli.manager.controllers import Caches, RunContext
from kcm_cli.rest.transport import RequestError
from kcm_cli.runtime.tasks import Tasks

log = logging.getLogger(__name__)

RETRY_S = 10.0
"""Between attempts to learn which APIs are served."""


class Standby:
    """Starts at once, and runs until ``stop``.

    context: what the caches are made with; it may raise RequestError, and is called again then. failed: called with the
    error of a part that has ended.
    """

    def __init__(
        self, context: Callable[[], Awaitable[RunContext]], clock: Clock, failed: Callable[[str, BaseException], None]
    ) -> None:
        self._context = context
        self._clock = clock
        self._filling = Tasks(failed)
        self._running = Tasks(failed)
        self._caches: Caches | None = None
        self._filling.start("warm standby", self._fill())

    async def acquired(self) -> Caches | None:
        """The caches, now that the lease is held; None if there are none yet."""
        await self._filling.stop()
        if self._caches is not None:
            await self._caches.informers.confirm(self._running)
        return self._caches

    async def stop(self, within_s: float) -> None:
        """Stop to follow the caches."""
        await self._filling.stop(within_s)
        await self._running.stop(within_s)

    async def _fill(self) -> None:
        run = await self._known()
        self._caches = Caches(run)
        await self._caches.fill(run, self._running)
        log.info("Warm standby: following the caches", extra={"fields": {"caches": len(self._caches.informers.all())}})

    async def _known(self) -> RunContext:
        while True:
            try:
                return await self._context()
            except RequestError as error:
                fields = {"err": str(error)}
                log.info("Warm standby: the API server cannot be asked yet, will retry", extra={"fields": fields})
            await self._clock.sleep(RETRY_S)
