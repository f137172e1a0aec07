"""A text stream that buffers lines, for split log streams."""

import threading
from typing import Protocol


class TextStream(Protocol):
    """The destination of log lines."""

    def write(self, text: str, /) -> int: ...
    def flush(self) -> None: ...


class BufferedStream:
    """Buffers lines until there are ``size`` bytes, or the oldest has waited for ``period_s``.

    logging calls it with its handler's lock held; the lock here is for the timer's thread.
    """

    def __init__(self, stream: TextStream, size: int, period_s: float) -> None:
        self._stream = stream
        self._size = size
        self._period_s = period_s
        self._lines: list[str] = []
        self._held = 0
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def write(self, text: str, /) -> int:
        """Take a line."""
        with self._lock:
            self._lines.append(text)
            self._held += len(text.encode())
            full = self._held >= self._size
            if not full and self._timer is None:
                self._timer = threading.Timer(self._period_s, self.flush)
                self._timer.daemon = True
                self._timer.start()
        if full:
            self.flush()
        return len(text)

    def flush(self) -> None:
        """Write what is held."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            text, self._lines, self._held = "".join(self._lines), [], 0
            if text:
                self._stream.write(text)
                self._stream.flush()
