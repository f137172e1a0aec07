"""Data files: JSON that is compressed with gzip. ``tests/generate`` has the scripts that make them."""

import zlib
from pathlib import Path

_GZIP = 16 + zlib.MAX_WBITS


def unpacked(path: Path) -> bytes:
    """The JSON text of a data file."""
    return zlib.decompress(path.read_bytes(), _GZIP)
