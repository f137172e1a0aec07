"""/debug/causes: what the controllers did lately, and why.

upstream: none
"""

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from kcm_cli.machinery.durations import parse_duration
from kcm_cli.machinery.errors import FormatError
from kcm_cli.manager.server import responses
from kcm_cli.manager.server.mux import Handler
from kcm_cli.runtime.cause_document import About, document
from kcm_cli.runtime.cause_ring import CauseRing, Snapshot

_BUSY_S = 10.0
_MOST_DIGITS = 18


def page(ring: CauseRing, controllers: asyncio.AbstractEventLoop) -> Handler:
    """The handler. ``controllers``: the loop that fills the ring.

    Query: kind, namespace and name of an object; since, a duration such as 10m; after, the ``total`` of an earlier
    answer. One answer is made at a time, in a thread of its own.
    """
    one = asyncio.Lock()

    async def taken() -> Snapshot:
        return ring.snapshot()

    async def handle(request: Request) -> Response:
        now = ring.now() + ring.shift
        try:
            about = _about(request, now)
        except FormatError as error:
            return responses.error(str(error), 400)
        try:
            async with asyncio.timeout(_BUSY_S), one:
                future = asyncio.run_coroutine_threadsafe(taken(), controllers)
                body = await asyncio.to_thread(document, await asyncio.wrap_future(future), about, now)
        except TimeoutError:
            return responses.error("the controllers are busy", 503)
        return Response(body, 200, {"content-type": "application/json", "x-content-type-options": "nosniff"})

    return handle


def _about(request: Request, now: float) -> About:
    """Raises FormatError."""
    query = request.query_params
    since, after = query.get("since", ""), query.get("after", "0")
    if not (after.isascii() and after.isdigit()) or len(after) > _MOST_DIGITS:
        raise FormatError("after: not a number")
    try:
        earliest = now - parse_duration(since) if since else 0.0
    except FormatError as error:
        raise FormatError("since: not a duration such as 10m") from error
    return About(query.get("kind", ""), query.get("namespace", ""), query.get("name", ""), earliest, int(after))
