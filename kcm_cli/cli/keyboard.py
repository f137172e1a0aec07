"""Single keys of a terminal, on an event loop."""

import asyncio
import contextlib
import os
import sys
import termios
import tty
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def keys(press: Callable[[str], None]) -> Iterator[None]:
    """Within the block, ``press`` is called with each character that is typed. Ctrl-C stays a signal. Does nothing if
    standard input is no terminal."""
    if sys.stdin is None or not sys.stdin.isatty():
        yield
        return
    keyboard, loop = sys.stdin.fileno(), asyncio.get_running_loop()
    before = termios.tcgetattr(keyboard)

    def read() -> None:
        data = os.read(keyboard, 1024)
        if not data:
            loop.remove_reader(keyboard)
        for character in data.decode(errors="replace"):
            press(character)

    tty.setcbreak(keyboard, termios.TCSADRAIN)  # what was typed a moment ago is kept
    loop.add_reader(keyboard, read)
    try:
        yield
    finally:
        loop.remove_reader(keyboard)
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
