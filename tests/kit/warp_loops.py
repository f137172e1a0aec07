"""Loops whose clock can be moved, on threads of their own."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from kcm_cli.testing.warp import WarpLoop


@contextmanager
def running_loop() -> Iterator[WarpLoop]:
    """A loop that runs while inside."""
    loop = WarpLoop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join(5)
    loop.close()
