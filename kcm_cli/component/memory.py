"""Gives memory back to the system, with glibc; elsewhere this does nothing.

glibc keeps what is freed between what is still in use: connections with TLS leave 35 KiB each behind, so that the
process grows under churn although no object does. Large blocks, such as the bodies of lists, are mapped by themselves,
and go when they are freed: by default glibc stops that for blocks of a size that was freed once.
"""

import ctypes
from contextlib import suppress
from typing import Any

_MMAP_THRESHOLD, _LARGE = -3, 128 << 10
"""M_MMAP_THRESHOLD, and its initial value in bytes; setting it keeps it."""


class Allocator:
    """The C library's."""

    def __init__(self) -> None:
        self._library: Any = None
        with suppress(OSError, TypeError):  # as on Windows
            self._library = ctypes.CDLL(None)

    def keep_large_blocks_apart(self) -> None:
        """Map blocks of 128 KiB and more by themselves, always."""
        if (mallopt := getattr(self._library, "mallopt", None)) is not None:
            mallopt(_MMAP_THRESHOLD, _LARGE)

    def give_back(self) -> None:
        """Return freed pages to the system: 40 ms for 200 MiB in small pieces."""
        if (trim := getattr(self._library, "malloc_trim", None)) is not None:
            trim(0)
