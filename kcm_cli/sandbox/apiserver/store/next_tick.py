"""Runs work after writes: once in the loop's next turn, after any number of writes."""

import asyncio
from collections.abc import Callable

from kcm_cli.sandbox.apiserver.store import Event


class NextTick:
    """Schedules ``work``, which has no await and does not run inside the write that causes it."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._due = False

    def ask(self, event: Event | None = None) -> None:
        """Schedule the work. Subscribe it to the resources that the work depends on."""
        if not self._due:
            self._due = True
            asyncio.get_running_loop().call_soon(self._run)

    def _run(self) -> None:
        self._due = False
        self._work()
