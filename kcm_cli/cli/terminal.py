"""A region at the bottom of the terminal that is redrawn in place, below all other output.

While it is open, ``sys.stdout`` and ``sys.stderr`` are streams that write above the region, at most a few times a
second, so that many log lines do not cause many redraws. Closing erases the region and restores the terminal.
"""

import asyncio
import contextlib
import io
import os
import sys
import termios
import threading
from collections.abc import Iterator
from typing import TextIO

from rich.console import Console, RenderableType
from rich.live import Live
from rich.segment import SegmentLines

LINES_S = 0.05
"""How long lines may wait for others to be written with them."""


def is_capable(stream: TextIO) -> bool:
    """Whether a stream is a terminal that supports a region, with this process in the foreground."""
    return stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb", "unknown") and _in_foreground(stream)


class Region:
    """A region. It belongs to one event loop; lines may come from any thread."""

    def __init__(self, terminal: TextIO) -> None:
        self.console = Console(file=terminal, highlight=False)
        self._terminal = terminal
        self._loop = asyncio.get_running_loop()
        self._lock = threading.RLock()
        self._above = ""
        self._timer: asyncio.TimerHandle | None = None
        self._live: Live | None = None
        self._undo = contextlib.ExitStack()

    @property
    def is_open(self) -> bool:
        return self._live is not None

    @property
    def is_ours(self) -> bool:
        """Whether this process is in the foreground of the terminal."""
        return _in_foreground(self._terminal)

    def open(self) -> None:
        """Open the region."""
        with self._lock:
            self._undo.enter_context(_quiet_keyboard())
            self._live = Live(
                console=self.console,
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
                vertical_overflow="crop",
            )
            self._live.start()
            self._redirect()

    def draw(self, content: RenderableType) -> None:
        """Draw this content in the region."""
        lines = self.console.render_lines(content, pad=False)  # once: each line from above draws the region again
        with self._lock, self._until_lost():
            if self._live is not None:
                self._live.update(SegmentLines(lines, new_lines=True), refresh=True)

    def close(self) -> None:
        """Erase the region and restore the terminal. May be called twice."""
        with self._lock:
            if self._live is None:
                return
            self._write_lines(all_of_it=True)
            live, self._live = self._live, None
            if live is None:  # the terminal is gone
                return
            with self._undo, self._until_lost():
                live.stop()

    def put(self, text: str, original: TextIO) -> None:
        """Write above the region, or to the original stream if the region is closed."""
        with self._lock:
            if self._live is None:
                original.write(text)
                original.flush()
                return
            first = not self._above
            self._above += text
        if first:
            self._loop.call_soon_threadsafe(self._write_soon)

    def _redirect(self) -> None:
        self._undo.enter_context(contextlib.redirect_stdout(_Above(self, sys.stdout)))
        if sys.stderr.isatty():
            self._undo.enter_context(contextlib.redirect_stderr(_Above(self, sys.stderr)))

    def _write_soon(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(LINES_S, self._write_lines)

    def _write_lines(self, *, all_of_it: bool = False) -> None:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            end = len(self._above) if all_of_it else self._above.rfind("\n") + 1
            text, self._above = self._above[:end].removesuffix("\n"), self._above[end:]
            if end and self._live is not None:
                with self._until_lost():
                    self.console.out(text, highlight=False)

    @contextlib.contextmanager
    def _until_lost(self) -> Iterator[None]:
        """Closes the region without an error if the terminal is gone."""
        try:
            yield
        except OSError:
            self._live = None
            self._undo.close()


class _Above(io.TextIOBase):
    """A standard stream while the region is open. Afterwards it writes to the original stream."""

    def __init__(self, region: Region, original: TextIO) -> None:
        self._region = region
        self._original = original

    def write(self, text: str, /) -> int:
        self._region.put(text, self._original)
        return len(text)

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._original.fileno()


def _in_foreground(stream: TextIO) -> bool:
    try:
        return os.tcgetpgrp(stream.fileno()) == os.getpgrp()
    except OSError:  # not our controlling terminal: no shell in between
        return True


@contextlib.contextmanager
def _quiet_keyboard() -> Iterator[None]:
    """Discards keyboard input, without echo."""
    if sys.stdin is None or not sys.stdin.isatty():
        yield
        return
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    quiet = termios.tcgetattr(keyboard)
    quiet[3] &= ~termios.ECHO
    termios.tcsetattr(keyboard, termios.TCSANOW, quiet)
    try:
        yield
    finally:
        termios.tcflush(keyboard, termios.TCIFLUSH)
        termios.tcsetattr(keyboard, termios.TCSANOW, before)
