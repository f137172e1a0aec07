"""Facts about the API of v1.36, compressed; ``tests/generate`` has the scripts that made them."""

import zlib
from pathlib import Path

_GZIP = 16 + zlib.MAX_WBITS


def read_data(name: str) -> bytes:
    """The JSON text of ``name.json.gz``."""
    return zlib.decompress(Path(__file__).with_name(f"{name}.json.gz").read_bytes(), _GZIP)


def read_definitions() -> bytes:
    """The JSON text of ``definitions.json.bz2``: the published schemas. Takes some 60 ms."""
    # imported here: a Python that was built without it serves everything but OpenAPI
    import bz2

    return bz2.decompress(Path(__file__).with_name("definitions.json.bz2").read_bytes())
