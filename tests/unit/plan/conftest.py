"""Clusters that the tests of a module share."""

from collections.abc import Iterator

import pytest

from tests.unit.plan.clusters import end_clusters


@pytest.fixture(scope="module", autouse=True)
def clusters() -> Iterator[None]:
    yield
    end_clusters()
