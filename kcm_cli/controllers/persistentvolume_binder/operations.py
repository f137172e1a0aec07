"""What takes longer than a sync may: recycling, deleting and provisioning, each once at a time.

An operation that failed is not begun again under its name before its backoff is over. Nobody waits for that: the
next pass over everything asks again.

upstream: pkg/util/goroutinemap
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine

from kcm_cli.component.clock import Clock
from kcm_cli.rest.transport import TransportError
from kcm_cli.runtime.tasks import Tasks

FIRST_S = 0.5
LONGEST_S = 122.0
log = logging.getLogger(__name__)


class Operations:
    """Named operations in the background of a controller (upstream: GoRoutineMap)."""

    def __init__(self, clock: Clock, controller: str) -> None:
        self._clock = clock
        self._controller = controller
        self._tasks = Tasks(self._failed)
        self._going: set[str] = set()
        self._backoff: dict[str, tuple[float, float]] = {}

    def start(self, name: str, work: Callable[[], Coroutine[object, object, None]]) -> None:
        """Start it, unless it is running or backing off."""
        until, _ = self._backoff.get(name, (0.0, 0.0))
        if name in self._going or self._clock.monotonic() < until:
            return
        self._going.add(name)
        self._tasks.start(name, self._run(name, work))

    def forget(self, name: str) -> None:
        """Its object is deleted: the back-off of its name is dropped."""
        self._backoff.pop(name, None)

    async def run(self) -> None:
        """Until cancelled, with the operations that are running then."""
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await self._tasks.stop()

    async def _run(self, name: str, work: Callable[[], Coroutine[object, object, None]]) -> None:
        try:
            await work()
        finally:
            self._going.discard(name)
        self._backoff.pop(name, None)

    def _failed(self, name: str, error: BaseException) -> None:
        _, before_s = self._backoff.get(name, (0.0, 0.0))
        wait_s = min(2 * before_s, LONGEST_S) or FIRST_S
        self._backoff[name] = (self._clock.monotonic() + wait_s, wait_s)
        fields = {"controller": self._controller, "operation": name, "delay_s": wait_s, "err": str(error)}
        unexpected = getattr(error, "reason", None) is None and not isinstance(error, OSError | TransportError)
        level = logging.ERROR if unexpected else logging.INFO
        log.log(level, "Operation failed, will retry", extra={"fields": fields}, exc_info=error if unexpected else None)
