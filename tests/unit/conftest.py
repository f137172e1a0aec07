"""Facts read off the kube-controller-manager binary, and a sandbox on virtual time for whoever asks for ``play``."""

import json
from collections.abc import Callable

import pytest

from tests.kit.places import REFERENCE
from tests.kit.world import certificates, play

__all__ = ["certificates", "play"]


@pytest.fixture
def reference() -> Callable[[str], object]:
    """A file of facts by name."""

    def load(name: str) -> object:
        return json.loads((REFERENCE / name).read_text())

    return load
