"""Work that follows writes: once on the loop's next turn, however many there were."""

import asyncio
from collections.abc import Callable

from kcm_cli.sandbox.apiserver.store import Event


class NextTick:
    """Asks for some work. The work itself runs without an await, and outside of the write that asked for it."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._due = False

    def ask(self, event: Event) -> None:
        """To be subscribed to what the work depends on."""
        if not self._due:
            self._due = True
            asyncio.get_running_loop().call_soon(self._run)

    def _run(self) -> None:
        self._due = False
        self._work()
