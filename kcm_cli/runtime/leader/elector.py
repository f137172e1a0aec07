"""Takes part in an election: acquires the lease, renews it, releases it.

Guarantees: ``acquire`` returns only once the lease names this process. ``hold`` returns at the latest
``renew_deadline_s`` (plus one ``retry_period_s``) after the last successful renewal, which is before another candidate
may take the lease, and at once when another holder is seen or ``alive`` returns False. ``safe`` is False from the
moment from which others may take the lease, also when the machine was suspended meanwhile. ``release`` also gives up
a lease that a cancelled or unanswered request may have acquired.

Not guaranteed: fencing. A write that was sent before the lease was lost may still arrive after it.

upstream: staging/src/k8s.io/client-go/tools/leaderelection/leaderelection.go
"""

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine

import msgspec

from kcm_cli.component.clock import Clock, suspended_s
from kcm_cli.component.leader_config import JITTER_FACTOR
from kcm_cli.component.logs import V2
from kcm_cli.component.metrics import Registry
from kcm_cli.machinery.errors import TIMED_OUT, text_of
from kcm_cli.machinery.times import format_micro_time
from kcm_cli.rest.errors import ApiError, Conflict
from kcm_cli.rest.transport import RequestError, Unreachable
from kcm_cli.runtime.leader.lock import Lock
from kcm_cli.runtime.leader.record import (
    Claim,
    Held,
    Observation,
    Record,
    decide,
    decide_coordinated,
    observe,
    released,
)

log = logging.getLogger(__name__)

_FAILURES = (TimeoutError, RequestError)
HEALTH_CHECK = "leaderElection"
HEALTH_TOLERANCE_S = 20.0
"""A leader is healthy until so long after the end of a lease that it has not renewed: it should have ended itself."""
_READING, _CREATING = "Error retrieving lease lock", "Error initially creating lease lock"
_UPDATING = "Failed to update lease"


class ElectionConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One election. Durations in seconds, validated in component.leader_config; ``identity`` is unique to the process.

    ``coordinated``: the API server chooses among the LeaseCandidates (gate CoordinatedLeaderElection). ``eager``: look
    at another holder's lease twice per ``retry_period_s``, and when it expires, instead of at random times that are
    one to two periods apart.
    """

    identity: str
    name: str = "kube-controller-manager"
    namespace: str = "kube-system"
    lease_duration_s: float = 15.0
    renew_deadline_s: float = 10.0
    retry_period_s: float = 2.0
    coordinated: bool = False
    eager: bool = False

    @property
    def duration_s(self) -> int:
        """The lease duration in whole seconds, as a Lease holds it."""
        return max(1, int(self.lease_duration_s))

    @property
    def request_timeout_s(self) -> float:
        """How long one request of the election may take."""
        return max(1.0, self.renew_deadline_s / 2)


class Elector:
    """One process in one election. Runs on one event loop; the properties may be read from any thread."""

    def __init__(
        self,
        config: ElectionConfig,
        lock: Lock,
        clock: Clock,
        rng: random.Random,
        metrics: Registry,
    ) -> None:
        self._config = config
        self._lock = lock
        self._clock = clock
        self._rng = rng
        self._known: Observation | None = None
        self._seen_holder = ""
        self._failing = _READING
        self._safe_until = float("-inf")
        self._sent: asyncio.Future[None] | None = None
        self._unsure = False
        self._status = metrics.gauge(
            "leader_election_master_status", "Whether this process holds the lease.", labels=("name",)
        ).labels(config.name)
        self._slow = metrics.counter(
            "leader_election_slowpath_total",
            "Number of renewals for which the lease had to be read first.",
            labels=("name",),
        )

    @property
    def leads(self) -> bool:
        """Whether the lease, as last seen, names this process."""
        known = self._known
        return known is not None and known.record.holder == self._config.identity

    @property
    def holder(self) -> str:
        """The holder's identity, as last seen."""
        known = self._known
        return known.record.holder if known is not None else ""

    def safe(self) -> bool:
        """Whether no other candidate can have acquired the lease that this process holds. Any thread."""
        return self._now() < self._safe_until

    def _now(self) -> float:
        """Monotonic seconds, including the time for which the machine was suspended."""
        return self._clock.monotonic() + suspended_s()

    def check(self, now: float) -> str | None:
        """The health check: it fails for a leader that has not renewed for long after its lease expired."""
        known = self._known
        if known is None or not self.leads:
            return None
        if now - known.at > self._config.lease_duration_s + HEALTH_TOLERANCE_S:
            return f"failed election to renew leadership on lease {self._config.name}"
        return None

    async def acquire(self) -> None:
        """Wait until this process leads."""
        log.info("Attempting to acquire leader lease...", extra=self._fields())
        while not await self._attempt():
            await self._clock.sleep(self._pause_s())
        self._lock.record_event(f"{self._config.identity} became leader")
        self._status.set(1.0)
        log.info("Successfully acquired lease", extra=self._fields())

    def _pause_s(self) -> float:
        """Seconds until the next attempt to acquire the lease."""
        period_s = self._config.retry_period_s
        if not self._config.eager:
            return period_s * (1.0 + self._rng.random() * JITTER_FACTOR)
        known, pause_s = self._known, period_s / 2
        left_s = known.left_s(self._clock.monotonic()) if known is not None else 0.0
        return min(pause_s, left_s) if left_s > 0 else pause_s

    async def hold(self, alive: Callable[[], bool] = lambda: True) -> str:
        """Renew the lease until it is lost; returns the reason. ``alive``: whether this process may lead at all."""
        why = ""
        while not why:
            await self._clock.sleep(self._config.retry_period_s)
            why = await self._renew(alive)
        self._status.set(0.0)
        self._safe_until = float("-inf")
        log.info("Failed to renew lease", extra=self._fields(err=why))
        return why

    async def release(self, within_s: float = float("inf")) -> bool:
        """Give up the lease, so that another candidate may take it at once. Call it when the controllers have ended.

        Returns whether that worked within the time, which is the renew deadline at most.
        """
        self._status.set(0.0)
        self._safe_until = float("-inf")
        if not self.leads and not self._unsure:
            return True
        try:
            async with asyncio.timeout(min(within_s, self._config.renew_deadline_s)):
                if self._sent is not None:
                    await asyncio.wait([self._sent])
                while True:
                    try:
                        return await self._release()
                    except Conflict:
                        continue  # our own last renewal, or another client's label: read again
        except _FAILURES as error:
            log.error("Failed to release lease", extra=self._fields(err=text_of(error)))
            return False

    async def _release(self) -> bool:
        current = await self._lock.get()
        if current is None:
            return False
        now = self._clock.monotonic()
        self._known = observe(self._known, current, now)
        if not self.leads:
            return True
        record = released(current, format_micro_time(self._clock.now()))
        await self._lock.update(record)
        self._known = Observation(record, now)
        self._lock.record_event(f"{self._config.identity} stopped leading")
        return True

    async def _renew(self, alive: Callable[[], bool]) -> str:
        """One renewal, tried again until the deadline; why it failed for good."""
        deadline = self._clock.monotonic() + self._config.renew_deadline_s
        while True:
            if not alive():
                return "the controllers' event loop has stalled"
            remaining_s = deadline - self._clock.monotonic()
            if remaining_s <= 0:
                return TIMED_OUT
            if await self._attempt(remaining_s):
                return ""
            if not self.leads:
                return f"the lease was taken by {self.holder or 'nobody'}"
            left_s = deadline - self._clock.monotonic()
            await self._clock.sleep(min(self._config.retry_period_s, max(left_s, 0.0)))

    async def _attempt(self, limit_s: float = float("inf")) -> bool:
        """Try to get or keep the lease; whether that worked."""
        started = self._now()
        try:
            async with asyncio.timeout(min(limit_s, self._config.request_timeout_s * 3)):
                worked = await self._keep_fast() or await self._read_and_claim()
        except _FAILURES as error:
            log.error(self._failing, extra=self._fields(err=text_of(error)))
            worked = False
        if worked:
            self._safe_until = started + self._config.duration_s
        self._report_holder()
        return worked

    async def _keep_fast(self) -> bool:
        """Renew without reading, assuming that the lease is unchanged."""
        known = self._known
        if self._config.coordinated or known is None or not self.leads or not known.valid(self._clock.monotonic()):
            return False
        claim = decide(known, self._mine(), self._clock.monotonic())
        if not isinstance(claim, Claim):
            return False
        try:
            await self._write(claim.record)
        except _FAILURES as error:
            log.log(
                V2,
                "Failed to update lease optimistically, falling back to slow path",
                extra=self._fields(err=text_of(error)),
            )
            return False
        return True

    async def _read_and_claim(self) -> bool:
        self._failing = _READING
        async with asyncio.timeout(self._config.request_timeout_s):
            current = await self._lock.get()
        now = self._clock.monotonic()
        coordinated = self._config.coordinated
        if current is None and coordinated:
            log.info("Lease lock not found", extra=self._fields())
            return False
        if current is None:
            await self._make()
            return True
        self._known = observe(self._known, current, now)
        verdict = (decide_coordinated if coordinated else decide)(self._known, self._mine(), now)
        if isinstance(verdict, Held):
            log.debug("Lease is held by and has not yet expired", extra=self._fields(holder=verdict.holder))
            return False
        if verdict.renews:
            self._slow.labels(self._config.name).inc()
        await self._write(verdict.record)
        return True

    async def _make(self) -> None:
        record, now = self._mine(), self._clock.monotonic()
        self._failing = _CREATING
        await self._claim(self._lock.create(record))
        self._known = Observation(record, now)

    async def _write(self, record: Record) -> None:
        now = self._clock.monotonic()
        self._failing = _UPDATING
        await self._claim(self._lock.update(record))
        self._known = Observation(record, now)

    async def _claim(self, write: Coroutine[object, object, None]) -> None:
        """Send a claim. Where this is cancelled it goes on, and ``release`` waits for it: the server may have it."""
        sent = self._sent = asyncio.ensure_future(write)
        self._unsure = True
        try:
            async with asyncio.timeout(self._config.request_timeout_s):
                await asyncio.shield(sent)
        except TimeoutError:
            sent.cancel()
            raise
        except (ApiError, Unreachable):
            self._unsure = False
            raise
        self._unsure = False

    def _mine(self) -> Record:
        now = format_micro_time(self._clock.now())
        return Record(self._config.identity, self._config.duration_s, now, now)

    def _report_holder(self) -> None:
        if self.holder != self._seen_holder:
            self._seen_holder = self.holder
            log.info("New leader observed", extra=self._fields(holder=self.holder))

    def _fields(self, **more: str) -> dict[str, dict[str, str]]:
        return {"fields": {"lock": f"{self._config.namespace}/{self._config.name}", **more}}
