"""An API server on virtual time, without sockets, for integrated tests."""

import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from kcm_cli.component import virtual
from kcm_cli.component.clock import LoopClock
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from tests.kit.api import EPOCH, Api
from tests.kit.embedded import EmbeddedServer

T = TypeVar("T")


@pytest.fixture(scope="session")
def certificates() -> Certificates:
    return Certificates.load(None, EPOCH)


async def started(certificates: Certificates) -> Api:
    """A fresh server."""
    server = EmbeddedServer(LoopClock(EPOCH), random.Random(1), certificates)
    await server.start()
    api = Api(server)
    account = {"metadata": {"name": "default"}}
    await api.json("POST", "/api/v1/namespaces/default/serviceaccounts", account, status=201)
    return api


@pytest.fixture
async def api(certificates: Certificates) -> Api:
    """A fresh server on virtual time."""
    return await started(certificates)


@pytest.fixture
def served(certificates: Certificates) -> Callable[[Callable[[Api], Awaitable[T]]], T]:
    """Runs a coroutine against a fresh server: for tests that need several."""

    def run(test: Callable[[Api], Awaitable[T]]) -> T:
        async def main() -> T:
            return await test(await started(certificates))

        return virtual.run(main())

    return run
