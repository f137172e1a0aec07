"""The feature gates of v1.36: their history, those that a controller manager reads, and their dependencies."""

from functools import cache
from pathlib import Path

import msgspec

from kcm_cli.machinery import codec
from kcm_cli.machinery.packed import unpacked

DATA = Path(__file__).with_name("featuregates.json.gz")
Stage = tuple[str, bool, str, bool]
"""Release, default, stage, and whether it is locked. It holds from its release on."""


class Table(msgspec.Struct):
    """The gates that all components know. managers: those that kube-controller-manager reads."""

    gates: dict[str, tuple[Stage, ...]]
    managers: frozenset[str]
    dependencies: dict[str, tuple[str, ...]]


@cache
def read_table() -> Table:
    """The table in ``featuregates.json.gz``. Shared: do not change it."""
    return codec.decode(unpacked(DATA), Table)
