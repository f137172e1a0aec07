"""A terminal for processes under test: a pty, and what a person would see on it."""

import codecs
import fcntl
import os
import pty
import re
import struct
import termios
import threading
from types import TracebackType
from typing import Any, Self, TextIO

import pytest

_TOKEN = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|([\r\n])|([^\x1b\r\n]+)|(\x1b)")


class Terminal:
    """Rows that scrolled away stay in ``lines``, so that all that was ever left on the screen can be looked at."""

    def __init__(self, rows: int = 40, columns: int = 8000) -> None:
        try:
            self._near, self._far = pty.openpty()
        except OSError as error:  # a root without /dev/pts
            pytest.skip(f"no pseudo-terminals: {error}")
        fcntl.ioctl(self._far, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._rows, self._columns = rows, columns
        self._row, self._column = 0, 0
        self._grid: list[str] = [""]
        self._part, self._decoder = "", codecs.getincrementaldecoder("utf-8")()
        self._lock = threading.Lock()
        self.cursor_shown = True
        self.raw = b""
        modes = termios.tcgetattr(self._far)
        modes[3] |= termios.NOFLSH  # Ctrl-C would drop what is not read yet, in the middle of a character
        termios.tcsetattr(self._far, termios.TCSANOW, modes)
        self.modes = termios.tcgetattr(self._far)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    @property
    def lines(self) -> list[str]:
        """What is to be seen, oldest first, without what is blank at the end."""
        with self._lock:
            return "\n".join(line.rstrip() for line in self._grid).rstrip("\n").split("\n")

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def stream(self) -> TextIO:
        """The other end, for code in this process."""
        return os.fdopen(os.dup(self._far), "w", encoding="utf-8")

    def press(self, keys: str) -> None:
        os.write(self._near, keys.encode())

    def is_as_it_was(self) -> bool:
        """Whether the cursor is shown, and typing works as before."""
        return self.cursor_shown and termios.tcgetattr(self._far) == self.modes

    def options(self, **environment: str) -> dict[str, Any]:
        """How a process is started on this terminal, which controls it: Ctrl-C is its signal."""

        def take() -> None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        streams = dict.fromkeys(("stdin", "stdout", "stderr"), self._far)
        return {**streams, "start_new_session": True, "preexec_fn": take, "env": {**os.environ, **environment}}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._far)
        self._thread.join(5)
        os.close(self._near)

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._near, 65536)
            except OSError:  # nobody has the other end any more
                return
            with self._lock:
                self.raw += data
                self._show(data)

    def _show(self, data: bytes) -> None:
        text = self._part + self._decoder.decode(data)
        cut = text.rfind("\x1b")
        whole = len(text) if cut < 0 or re.match(r"\x1b\[[0-9;?]*[A-Za-z]", text[cut:]) else cut
        self._part = text[whole:]
        for match in _TOKEN.finditer(text[:whole]):
            arguments, command, control, shown, stray = match.groups()
            assert stray is None, f"an escape that this terminal does not know: {text[match.start() :][:20]!r}"
            if command:
                self._obey(command, arguments)
            elif control:
                self._row, self._column = (self._row, 0) if control == "\r" else (self._row + 1, self._column)
                self._grid += [""] * (self._row + 1 - len(self._grid))
            else:
                for character in shown:
                    self._put(character)

    def _put(self, character: str) -> None:
        if self._column == self._columns:
            self._row, self._column = self._row + 1, 0
            self._grid += [""] * (self._row + 1 - len(self._grid))
        line = self._grid[self._row].ljust(self._column)
        self._grid[self._row] = line[: self._column] + character + line[self._column + 1 :]
        self._column += 1

    def _obey(self, command: str, arguments: str) -> None:
        match command, arguments:
            case "m", _:
                pass
            case (("h" | "l"), "?25"):
                self.cursor_shown = command == "h"
            case "A", _:
                top = max(0, len(self._grid) - self._rows)
                self._row = max(top, self._row - int(arguments or 1))
            case "K", "2":
                self._grid[self._row] = ""
            case _:
                raise AssertionError(f"a command that this terminal does not know: {arguments}{command}")
