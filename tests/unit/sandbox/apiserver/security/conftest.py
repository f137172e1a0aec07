"""A server for all tests of a file."""

from collections.abc import Iterator

import pytest

from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from tests.kit.asking import Api
from tests.kit.world import certificates  # of today, as the clock of these tests

__all__ = ["certificates"]


@pytest.fixture(scope="module")
def api(certificates: Certificates) -> Iterator[Api]:
    made = Api(certificates)
    yield made
    made.close()
