"""Slow start: batches that double in size, so that a server that refuses one creation does not get a thousand.

upstream: pkg/controller/replicaset/replica_set.go#slowStartBatch
"""

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def batches(items: Sequence[T], most: int | None = None) -> Iterator[Sequence[T]]:
    """1, 2, 4, … items in their order, never more than ``most`` at a time."""
    position, size = 0, 1
    while position < len(items):
        yield items[position : position + size]
        position += size
        size = 2 * size if most is None else min(2 * size, most)
