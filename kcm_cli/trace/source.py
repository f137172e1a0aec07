"""Reads the causes of a manager, and keeps what it has read while it follows it."""

from collections import deque

from kcm_cli.machinery import codec
from kcm_cli.rest.manager_port import ManagerPort, ReadError
from kcm_cli.runtime.cause_document import About, CausesDocument, document
from kcm_cli.runtime.cause_ring import Entry, Snapshot
from kcm_cli.trace.join import Target, trace
from kcm_cli.trace.text import day, lines

PATH = "/debug/causes"
MOST_BYTES = 64 << 20
MOST_ENTRIES = 100_000
_TIMEOUT_S = 30.0


def text_about(taken: Snapshot, now: float, target: Target) -> str:
    """What a record in this process says of an object, as text. now: Unix time."""
    found = codec.decode(document(taken, About(), now), CausesDocument)
    source = f"Recorded since {day(found.started)}."
    return "\n".join(lines(trace(found.entries, target, forgotten=found.forgotten), [source]))


class Source:
    """A manager's record. entries: what was read, the last MOST_ENTRIES of it."""

    def __init__(self, port: ManagerPort) -> None:
        self._port = port
        self.entries: deque[Entry] = deque(maxlen=MOST_ENTRIES)
        self.started = self.now = 0.0
        self.forgotten = 0
        self._total = 0

    @property
    def total(self) -> int:
        """How many entries there were since the manager's start."""
        return self._total

    async def read(self) -> bool:
        """Read what is new. Returns whether the manager is another one than before, of which everything is forgotten.
        Raises ReadError."""
        found = await self._ask(self._total)
        other = self.started not in (0.0, found.started)
        if other:
            self.entries.clear()
            found = await self._ask(0)
        self.started, self.now, self._total = found.started, found.now, found.total
        self.forgotten = found.total - len(self.entries) - len(found.entries)
        self.entries.extend(found.entries)
        return other

    async def _ask(self, after: int) -> CausesDocument:
        query = (("after", str(after)),)
        body = await self._port.read(PATH, query, most_bytes=MOST_BYTES, timeout_s=_TIMEOUT_S)
        try:
            return codec.decode(body, CausesDocument)
        except codec.DecodeError as error:
            raise ReadError(f"{PATH}: not the causes of a manager that this kcm can read: {error}") from error
