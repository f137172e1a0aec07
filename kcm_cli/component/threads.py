"""Starts threads where the system may permit no more of them (a limit of the container, or of the user)."""

import errno
import threading


def start(thread: threading.Thread) -> None:
    """Start a thread. Raises OSError, with the error of the system call."""
    try:
        thread.start()
    except RuntimeError as error:
        raise OSError(errno.EAGAIN, str(error)) from error
