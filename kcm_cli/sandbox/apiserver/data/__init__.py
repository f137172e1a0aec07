"""Facts about the API of v1.36, compressed; ``tests/generate`` has the scripts that made them."""

import zlib
from pathlib import Path

_GZIP = 16 + zlib.MAX_WBITS


def read_data(name: str) -> bytes:
    """The JSON text of ``name.json.gz``."""
    return zlib.decompress(Path(__file__).with_name(f"{name}.json.gz").read_bytes(), _GZIP)
