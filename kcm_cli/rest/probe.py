"""Waits until the API server is healthy, or explains in one line why it is not.

upstream: staging/src/k8s.io/controller-manager/app/helper.go#WaitForAPIServer
"""

from kcm_cli.component.clock import Clock
from kcm_cli.rest.client import Client
from kcm_cli.rest.errors import ApiError, Forbidden, Unauthorized
from kcm_cli.rest.transport import Request, RequestError, Untrusted

TIMEOUT_S = 10.0
PERIOD_S = 1.0


class NotHealthy(Exception):
    """The API server did not become healthy in time. The text is one line, fit for stderr."""


async def wait_until_healthy(client: Client, clock: Clock) -> None:
    """Ask ``/healthz`` every second. Raises NotHealthy."""
    start = clock.monotonic()
    while True:
        try:
            await client.call(Request("GET", "/healthz", timeout_s=TIMEOUT_S))
            return
        except RequestError as error:
            if clock.monotonic() - start + PERIOD_S > TIMEOUT_S:
                raise NotHealthy(explain(error)) from error
        await clock.sleep(PERIOD_S)


def explain(error: RequestError) -> str:
    """Why the API server could not be used, in one line."""
    match error:
        case Unauthorized():
            return f"the API server does not accept the credentials (401): {error}; is the token expired?"
        case Forbidden():
            return f"the API server does not let this user look at its health (403): {error}"
        case ApiError():
            return f"the API server is not healthy ({error.status}): {error}"
        case Untrusted():
            return f"the API server cannot be trusted: {error}; does certificate-authority belong to it?"
        case _:
            return f"the API server cannot be reached: {error}"
