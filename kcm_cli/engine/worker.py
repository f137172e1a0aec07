"""Takes keys from a queue, syncs them, and turns the outcome into a retry.

``sync`` raises; this is the only place that catches everything and logs it, unless the sync has (``Logged``).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

import msgspec

from kcm_cli.component.clock import Clock
from kcm_cli.component.logs import V2, V5
from kcm_cli.engine.own_writes import OwnWrites
from kcm_cli.machinery.errors import SyncError
from kcm_cli.machinery.kref import kref
from kcm_cli.rest.transport import TransportError
from kcm_cli.runtime.cause_ring import CauseRing, Later
from kcm_cli.runtime.causes import Causes, Work, set_working, unrecorded
from kcm_cli.runtime.informer import AnyInformer
from kcm_cli.runtime.tasks import Tasks
from kcm_cli.runtime.turns import Timed, Turns
from kcm_cli.runtime.workqueue import ShutDown, WorkQueue

log = logging.getLogger(__name__)

_ORDINARY = frozenset({"Conflict", "NotFound", "AlreadyExists"})

Sync = Callable[[str], Awaitable[float | None]]
"""Brings one key to its desired state. Returns seconds after which to look again, or None."""


class Pending(SyncError):
    """Something that the sync needs does not exist yet: the key is retried, which is logged at verbosity 5 only."""


class Logged(SyncError):
    """A failure that the sync itself has logged: the key is retried, and only giving it up is logged again."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


UNHANDLED, UNHANDLED_LOGGER = "Unhandled Error", "UnhandledError"
"""The message and the logger of client-go's HandleError."""


class Failures(msgspec.Struct, frozen=True, kw_only=True):
    """How failed syncs of a queue are logged.

    retried, dropped: the messages of a key that is retried, and of one that is given up. level, dropped_level: their
    levels. key: the field with the key; "" for none. ref: whether it names an object. err: the text of the error, with
    {key} and {error}. end: the message of the error that follows ``dropped`` where that is below ERROR. retries: the
    field of ``dropped`` with the number of retries; "" for none.
    """

    retried: str
    level: int = logging.ERROR
    dropped: str = ""
    dropped_level: int = logging.ERROR
    key: str = ""
    ref: bool = False
    err: str = "{error}"
    end: str = UNHANDLED
    retries: str = ""


def unhandled(err: str = "{error}") -> Failures:
    """The line of utilruntime.HandleError. err: its text, with {key} and {error}."""
    return Failures(retried=UNHANDLED, err=err)


SYNC_FAILED = Failures(
    retried="Sync failed, will retry", dropped="Sync failed, dropping the key until its next change", key="key"
)
"""For queues that declare nothing."""


async def until_synced(informers: Iterable[AnyInformer]) -> None:
    """Wait until all of these caches have been filled for the first time."""
    for informer in informers:
        await informer.synced.wait()


def _ignore(seconds: float) -> None:
    """For workers whose steps nobody measures."""


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """Syncs the keys of one queue, up to ``count`` at a time.

    A loop is added, up to ``count``, when a key is taken and no other loop waits for the next one.

    ``retries``: how often a failing key is retried before it is dropped until its next change; None for no limit.
    ``own``: a key whose own writes the caches do not show yet is deferred, and queued again when they do. ``kind``: of
    the objects that the keys name, for logs; "" where they name none. ``failures``: how failed syncs are logged.
    ``spent``: called with the seconds of each step of a sync, for which the loop did nothing else. ``ring``: records
    what was synced, and why.
    """

    controller: str
    queue: WorkQueue
    sync: Sync
    clock: Clock
    count: int = 1
    retries: int | None = None
    own: OwnWrites | None = None
    kind: str = ""
    failures: Failures = SYNC_FAILED
    spent: Callable[[float], None] = _ignore
    ring: CauseRing | None = None

    async def run(self) -> None:
        """Until cancelled; then the queue takes no more keys and the syncs under way are cancelled."""
        tasks = Tasks(self._crashed)
        loops: list[asyncio.Task[None]] = []

        def another() -> None:
            if len(loops) < self.count and not self.queue.awaited:
                loops.append(tasks.start(f"{self.controller} worker {len(loops)}", self._loop(another)))

        another()
        try:
            for loop in loops:  # the list may grow
                await loop
            if self.count <= 0:  # as upstream: the controller does nothing, and is healthy
                await asyncio.Event().wait()
        finally:
            self.queue.shut_down()
            await tasks.stop()

    async def _loop(self, another: Callable[[], None]) -> None:
        turns = Turns.of_loop()
        while True:
            try:
                key = await self.queue.get()
            except ShutDown:
                return
            another()
            turns.begin()
            try:
                work = self._work(key, self.queue.taken_for)
                await (work if turns.virtual else Timed(work, self.spent))
            finally:
                self.queue.done(key)
            if turns.is_over():
                await asyncio.sleep(0)

    async def _work(self, key: str, why: Causes) -> None:
        started = self.clock.monotonic()
        work = Work(
            controller=self.controller,
            queue=self.queue.name,
            kind=self.kind,
            key=key,
            at=self.ring.now() if self.ring is not None else 0.0,
            causes=why,
            note=self.ring.note if self.ring is not None else unrecorded,
        )
        set_working(work)
        spans = self.ring.spans if self.ring is not None else None
        if spans is not None:
            work.attempt, work.waited_s = self.queue.num_requeues(key) + 1, self.queue.waited_s
        if self.ring is not None:
            self.ring.saw(why)
        try:
            if self.own is None:
                again_s = await self.sync(key)
            elif await self.own.shown(key, self.queue):
                with self.own.acting_for(key):
                    again_s = await self.sync(key)
            else:
                self.queue.keep(key, why)
                return
        except Logged as known:
            self._failed(key, known.error, work, logged=True)
        except Exception as error:  # noqa: BLE001  # the one place where errors of a sync end
            self._failed(key, error, work)
        else:
            self._succeeded(key, again_s, work, started)
        finally:
            if spans is not None:
                spans.ended(work, self.clock.monotonic())

    def _succeeded(self, key: str, again_s: float | None, work: Work, started: float) -> None:
        self.queue.forget(key)
        if again_s is not None:
            self.queue.add_after(key, again_s)
            if work.number:
                self._record(work, again_s)
        if log.isEnabledFor(logging.DEBUG):
            took = self.clock.monotonic() - started
            fields = {"controller": self.controller, "key": key, "duration_s": round(took, 6)}
            log.debug("Finished syncing", extra={"fields": fields})

    def _failed(self, key: str, error: Exception, work: Work, *, logged: bool = False) -> None:
        attempts = self.queue.num_requeues(key)
        dropped = self.retries is not None and attempts >= self.retries
        if dropped or not logged:
            self._log_failure(key, error, attempts + 1, dropped=dropped)
        if dropped:
            self.queue.forget(key)
        delay_s = -1.0 if dropped else self.queue.add_rate_limited(key)
        self._record(work, delay_s, str(getattr(error, "reason", "") or type(error).__name__))

    def _record(self, work: Work, after_s: float, error: str = "") -> None:
        if self.ring is not None:
            self.ring.asked(Later(work.noted(), self.ring.now(), after_s, error[:64]))

    def _log_failure(self, key: str, error: Exception, attempts: int, *, dropped: bool) -> None:
        lines, reason = self.failures, getattr(error, "reason", None)
        unexpected = reason is None and not isinstance(error, OSError | TransportError)
        level, text = (
            (lines.dropped_level, lines.dropped) if dropped and lines.dropped else (lines.level, lines.retried)
        )
        if isinstance(error, Pending) and not dropped:
            level = V5
        elif reason in _ORDINARY and not dropped:
            level = min(level, V2)  # the object changed during the sync; the next one sees the change
        elif unexpected or (dropped and not lines.dropped):
            level = logging.ERROR
        fields: dict[str, object] = {}
        if level == logging.ERROR:
            fields["logger"] = UNHANDLED_LOGGER
        if lines.key:
            fields[lines.key] = kref(key) if lines.ref else key
        if dropped and lines.retries:
            fields[lines.retries] = self.retries
        fields["err"] = lines.err.format(key=key, error=error)
        if lines is SYNC_FAILED:
            fields |= {"controller": self.controller, "attempts": attempts}
        trace = error if unexpected else None
        log.log(level, text, extra={"fields": fields}, exc_info=trace)
        if dropped and lines.dropped and lines.dropped_level < logging.ERROR and level < logging.ERROR:
            fields = {"logger": UNHANDLED_LOGGER, "err": fields["err"]}
            log.error(lines.end, extra={"fields": fields})

    def _crashed(self, name: str, error: BaseException) -> None:
        log.error("Worker ended", extra={"fields": {"task": name, "err": str(error)}}, exc_info=error)
