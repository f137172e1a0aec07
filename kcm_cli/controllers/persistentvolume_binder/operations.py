"""Operations that take longer than a sync: recycling, deleting and provisioning. Each runs once at a time.

A failed operation is not started again before its backoff is over. One whose request failed is to be tried again then,
any other one by the periodic resync. Upstream leaves both to that, for up to 15 s.

upstream: pkg/util/goroutinemap
"""

import logging
from collections.abc import Callable, Coroutine

from kcm_cli.component.clock import Clock
from kcm_cli.rest.transport import RequestError, TransportError
from kcm_cli.runtime.tasks import Tasks

FIRST_S = 0.5
LONGEST_S = 122.0
MARGIN_S = 0.01
"""How much later than its backoff an operation is tried again."""
Again = Callable[[float], None]
"""Called with the seconds after which an operation may be tried again."""
log = logging.getLogger(__name__)


class Operations:
    """Named background operations of a controller. upstream: GoRoutineMap."""

    def __init__(self, clock: Clock, controller: str) -> None:
        self._clock = clock
        self._controller = controller
        self._tasks = Tasks(self._failed)
        self._going: set[str] = set()
        self._backoff: dict[str, tuple[float, float]] = {}
        """When an operation may start again, and the delay; (0, 0) until it fails. None for a deleted object."""
        self._again: dict[str, Again] = {}

    def start(self, name: str, work: Callable[[], Coroutine[object, object, None]], again: Again) -> None:
        """Start an operation, unless it is running or in backoff. ``again``: called if one of its requests fails."""
        until, _ = self._backoff.get(name, (0.0, 0.0))
        if name in self._going or self._clock.monotonic() < until:
            return
        self._going.add(name)
        self._backoff.setdefault(name, (0.0, 0.0))
        self._again[name] = again
        self._tasks.start(name, self._run(name, work))

    def forget(self, name: str) -> None:
        """Reset the backoff of an operation whose object was deleted."""
        self._backoff.pop(name, None)
        self._again.pop(name, None)

    async def run(self) -> None:
        """Run until cancelled, then stop the running operations."""
        await self._tasks.run()

    async def _run(self, name: str, work: Callable[[], Coroutine[object, object, None]]) -> None:
        try:
            await work()
        finally:
            self._going.discard(name)
        self.forget(name)

    def _failed(self, name: str, error: BaseException) -> None:
        fields: dict[str, object] = {"controller": self._controller, "operation": name}
        if name in self._backoff:
            _, before_s = self._backoff[name]
            fields["delay_s"] = wait_s = min(2 * before_s, LONGEST_S) or FIRST_S
            self._backoff[name] = (self._clock.monotonic() + wait_s, wait_s)
            if isinstance(error, RequestError):
                self._again[name](wait_s + MARGIN_S)
        text = "Operation failed, will retry" if name in self._backoff else "Operation on a deleted object failed"
        fields["err"] = str(error)
        unexpected = getattr(error, "reason", None) is None and not isinstance(error, OSError | TransportError)
        level = logging.ERROR if unexpected else logging.INFO
        log.log(level, text, extra={"fields": fields}, exc_info=error if unexpected else None)
