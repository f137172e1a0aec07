"""One trace from the sources that there are: a manager's record, a cluster that is observed, an audit log.

upstream: none
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from kcm_cli.component.clock import Clock
from kcm_cli.trace.audit import AuditLog
from kcm_cli.trace.behind import Linked, combined
from kcm_cli.trace.history import History
from kcm_cli.trace.join import Target, Trace, trace
from kcm_cli.trace.observer import Observer
from kcm_cli.trace.source import Source
from kcm_cli.trace.text import day


class Sources:
    """ring, observer, log: those that are read. history: what the last two have in common."""

    def __init__(self, target: Target, since_s: float, clock: Clock) -> None:
        self.history = History()
        self.ring: Source | None = None
        self.observer: Observer | None = None
        self.log: AuditLog | None = None
        self._target = target
        self._since_s = since_s
        self._clock = clock
        self._earliest: float | None = None
        self._known: tuple[tuple[int, int], Trace] | None = None

    @contextlib.asynccontextmanager
    async def observing(self, *, follow: bool) -> AsyncIterator[None]:
        """While inside, the cluster is watched; without ``follow`` it is listed once."""
        if self.observer is None:
            yield
            return
        await self.observer.look()
        if not follow:
            yield
            return
        watching = asyncio.create_task(self.observer.follow())
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    def trace(self) -> Trace:
        """What is known now. The beginning stays where it was at the first time."""
        place = self.history.total, self.ring.total if self.ring is not None else 0
        if self._known is None or self._known[0] != place:
            self._known = place, self._traced()
        return self._known[1]

    def _traced(self) -> Trace:
        if self._earliest is None:
            self._earliest = self._now() - self._since_s
        linked = Linked(self.history.steps, self.history.relations)
        if self.ring is None:
            return linked.about(self._target, self._earliest)
        ring = trace(self.ring.entries, self._target, forgotten=self.ring.forgotten, earliest=self._earliest)
        return combined(ring, linked, self._earliest)

    def _now(self) -> float:
        """The end of what is looked at: a log of last night ends then."""
        if self.ring is not None:
            return self.ring.now
        if self.observer is not None:
            return self.observer.now()
        if self.log is not None and self.log.last is not None:
            return self.log.last
        return self._clock.now().timestamp()

    def recorded(self) -> dict[str, float]:
        """Of the manager's record: since when it is kept, and how many entries made room."""
        if self.ring is None:
            return {"started": 0.0, "forgotten": 0}
        return {"started": self.ring.started, "forgotten": self.ring.forgotten}

    def notes(self) -> list[str]:
        """What there is to know about the sources."""
        found = []
        if self.ring is not None:
            lost = f"; {self.ring.forgotten} older entries made room" if self.ring.forgotten else ""
            found.append(f"The manager records since {day(self.ring.started)}{lost}.")
        if self.log is not None:
            log = self.log
            span = f", from {day(log.first)} to {day(log.last)}" if log.first is not None and log.last else ""
            bad = f"; {log.bad} could not be read" if log.bad else ""
            found.append(f"The audit log has {log.lines} lines{span}{bad}.")
            found += [f"Not read to its end: {path}: {why}" for path, why in log.cut.items()]
        if self.observer is not None:
            gaps = self.observer.gaps
            found.append("The cluster was observed; Events are kept for an hour as a rule.")
            found += [f"Not read: {name}: {why}" for name, why in sorted(gaps.items())]
            if ahead_s := self.observer.ahead_s:
                how = "ahead of" if ahead_s > 0 else "behind"
                found.append(f"Times are those of the API server, whose clock is {abs(ahead_s):.0f} s {how} this one.")
        if self.history.forgotten:
            found.append(f"{self.history.forgotten} older steps made room.")
        return found
