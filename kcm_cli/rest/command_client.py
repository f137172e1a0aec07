"""A client for a command, such as ``kcm plan``, which ends with it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kcm_cli.component.clock import Clock
from kcm_cli.component.version import GIT_VERSION, go_platform
from kcm_cli.rest.access import Access
from kcm_cli.rest.authorized import Authorized
from kcm_cli.rest.client import Client
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.rest.read_only import ReadOnly
from kcm_cli.rest.session import Session


@asynccontextmanager
async def client_of(found: Access, clock: Clock, purpose: str, *, writes: bool = False) -> AsyncIterator[Client]:
    """A client of a cluster; without ``writes`` it only reads. purpose: for the user agent. Raises TLSFilesError."""
    transport = Authorized(Session(found, clock), found.credentials)
    agent = f"kcm/{GIT_VERSION} ({go_platform()}) kubernetes/{purpose}"
    limited = transport if writes else ReadOnly(transport)
    client = Client(limited, limiter=Unlimited(), user_agent=agent, clock=clock)
    try:
        yield client
    finally:
        await client.close()
