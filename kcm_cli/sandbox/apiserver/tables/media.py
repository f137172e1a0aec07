"""The form of an answer for a request, tables included."""

from collections.abc import Mapping

from kcm_cli.rest.transport import Request
from kcm_cli.sandbox.apiserver.registry import negotiation
from kcm_cli.sandbox.apiserver.registry.catalog import Served
from kcm_cli.sandbox.apiserver.registry.media import Media, PlainJson


def media(served: Served, request: Request, query: Mapping[str, str], *, stream: bool) -> Media:
    """Raises ApiError 406."""
    header = request.headers.get("accept", "")
    if header in ("", "application/json", "*/*") and not served.converts:
        return PlainJson(served)
    form = negotiation.wanted(header, custom=served.info.custom, stream=stream)
    return negotiation.media_for(served, form)
