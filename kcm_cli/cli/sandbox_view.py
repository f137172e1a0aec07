"""The status view of a running sandbox, on a terminal."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable

from kcm_cli.cli.terminal import Region, is_capable
from kcm_cli.cluster.manager import SandboxManager
from kcm_cli.component.clock import Clock
from kcm_cli.manager.controller_map import queue_owners
from kcm_cli.sandbox.status.state import SandboxState
from kcm_cli.top.figures import Figures, between
from kcm_cli.top.own import figures_of
from kcm_cli.top.table import Shown, sandbox

REFRESH_S = 0.5
RATES_S = 2.0
"""The time over which rates are measured, as by ``kcm top``."""


class ManagerView:
    """The figures of the sandbox's manager, with the rates of the last RATES_S."""

    def __init__(self, manager: SandboxManager, clock: Clock) -> None:
        self._manager = manager
        self._clock = clock
        self._before: Figures | None = None
        self._shown: Shown | None = None

    def take(self) -> Shown | None:
        """What is shown of it now; None before it runs."""
        show, at = self._manager.observability, self._clock.monotonic()
        if show is None or (self._before is not None and at - self._before.at < RATES_S):
            return self._shown
        now = figures_of(show, at)
        view = between(self._before or now, now, queue_owners(), self._clock.now().timestamp())
        self._before, self._shown = now, Shown(view, None, (), len(show.running.names))
        return self._shown


@contextlib.asynccontextmanager
async def view(
    take: Callable[[], SandboxState], manager: ManagerView | None, stop: asyncio.Event
) -> AsyncIterator[None]:
    """Show the snapshots of ``take``, and the manager, until ``stop`` or the end of the block. Does nothing if standard
    output is not a terminal."""
    if not is_capable(sys.stdout):
        yield
        return
    region, loop = Region(sys.stdout), asyncio.get_running_loop()
    region.open()
    loop.add_signal_handler(signal.SIGTSTP, _suspend, region)
    work = asyncio.create_task(_refresh(region, take, manager, stop), name="status view")
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGTSTP)
        work.cancel()
        await asyncio.wait([work])
        region.close()


async def _refresh(
    region: Region, take: Callable[[], SandboxState], manager: ManagerView | None, stop: asyncio.Event
) -> None:
    shown = None
    while not stop.is_set():
        if not region.is_ours:
            region.close()
            shown = None
        elif (now := (take(), manager.take() if manager is not None else None, region.console.size)) != shown or (
            not region.is_open
        ):
            if not region.is_open:
                region.open()
            region.draw(sandbox(now[0], now[1], now[2].width, now[2].height - 1))
            shown = now
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(REFRESH_S):
                await stop.wait()
    region.close()


def _suspend(region: Region) -> None:
    """Ctrl-Z: restore the terminal. The next refresh in the foreground opens the view again."""
    region.close()
    os.kill(os.getpid(), signal.SIGSTOP)
