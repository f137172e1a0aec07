"""An API server on virtual time, without sockets, for integrated tests."""

import pytest

from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from tests.kit.api import EPOCH, Api, started


@pytest.fixture(scope="session")
def certificates() -> Certificates:
    return Certificates.load(None, EPOCH)


@pytest.fixture
async def api(certificates: Certificates) -> Api:
    """A fresh server on virtual time."""
    return await started(certificates)
