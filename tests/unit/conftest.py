"""Facts read off the kube-controller-manager binary, and a cluster on virtual time for whoever asks for ``world``."""

import json
from collections.abc import Callable

import pytest

from tests.kit.places import REFERENCE
from tests.kit.world import certificates, world

__all__ = ["certificates", "world"]


@pytest.fixture
def reference() -> Callable[[str], object]:
    """A file of facts by name."""

    def load(name: str) -> object:
        return json.loads((REFERENCE / name).read_text())

    return load
