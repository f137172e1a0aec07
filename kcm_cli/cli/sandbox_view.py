"""The status view of a running sandbox, on a terminal."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable

from kcm_cli.cli.terminal import Region, is_capable
from kcm_cli.sandbox.status.render import render
from kcm_cli.sandbox.status.snapshot import Snapshot

REFRESH_S = 0.5


@contextlib.asynccontextmanager
async def view(take: Callable[[], Snapshot], stop: asyncio.Event) -> AsyncIterator[None]:
    """Show the snapshots of ``take`` until ``stop`` or the end of the block. Does nothing if standard output is not a
    terminal."""
    if not is_capable(sys.stdout):
        yield
        return
    region, loop = Region(sys.stdout), asyncio.get_running_loop()
    region.open()
    loop.add_signal_handler(signal.SIGTSTP, _suspend, region)
    work = asyncio.create_task(_refresh(region, take, stop), name="status view")
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGTSTP)
        work.cancel()
        await asyncio.wait([work])
        region.close()


async def _refresh(region: Region, take: Callable[[], Snapshot], stop: asyncio.Event) -> None:
    shown = None
    while not stop.is_set():
        if not region.is_ours:
            region.close()
            shown = None
        elif (current := (take(), region.console.size)) != shown or not region.is_open:
            if not region.is_open:
                region.open()
            region.draw(render(current[0], current[1].height - 1))
            shown = current
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), REFRESH_S)
    region.close()


def _suspend(region: Region) -> None:
    """Ctrl-Z: restore the terminal. The next refresh in the foreground opens the view again."""
    region.close()
    os.kill(os.getpid(), signal.SIGSTOP)
