"""Facts about the original, where they are at hand."""

import json
from collections.abc import Callable

import pytest

from tests.places import REFERENCE


@pytest.fixture
def reference() -> Callable[[str], object]:
    """A file of facts by name; the test is skipped where there are none."""

    def load(name: str) -> object:
        path = REFERENCE / name
        if not path.exists():
            pytest.skip(f"{path} is not here")
        return json.loads(path.read_text())

    return load
