"""Facts read off the kube-controller-manager binary."""

import json
from collections.abc import Callable

import pytest

from tests.places import REFERENCE


@pytest.fixture
def reference() -> Callable[[str], object]:
    """A file of facts by name."""

    def load(name: str) -> object:
        return json.loads((REFERENCE / name).read_text())

    return load
