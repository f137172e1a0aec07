"""Requests to /openapi: which form is asked for, and whether the client has it already.

upstream: kube-openapi pkg/handler, pkg/handler3
"""

from collections.abc import Callable

from kcm_cli.rest.transport import Request, Response
from kcm_cli.sandbox.apiserver.openapi.document import Document, OpenApi

PROTOBUF_V2 = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
_ANSWERED_V2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""The same in letters that Go's parser of media types takes."""
_INDEX_HEADERS = {"content-type": "text/plain; charset=utf-8"}
_RANGES = {"accept-ranges": "bytes"}
_JSON = frozenset(["application/json", "application/*", "*/*"])


def answer(openapi: OpenApi, request: Request) -> Response | None:
    """The answer to a GET below /openapi; None for a path that is not there."""
    path = request.path
    if path == "/openapi/v2":
        accept = request.headers.get("accept", "")
        if PROTOBUF_V2 in accept or _ANSWERED_V2 in accept:
            return _document(request, openapi.v2_protobuf(), _ANSWERED_V2)
        return _negotiated(request, openapi.v2)
    if path == "/openapi/v3":
        return Response(200, {**_INDEX_HEADERS, **_RANGES}, openapi.index().body)
    if not path.startswith("/openapi/v3/"):
        return None
    place = path.removeprefix("/openapi/v3/")
    document = openapi.v3(place)
    if document is None:
        return None
    asked = dict(request.query).get("hash", "")
    if asked:
        current = openapi.hash(place)
        if asked != current:
            return Response(301, {"location": f"{path}?hash={current}"}, b"")
        return _negotiated(request, lambda: document, cached=True)
    return _negotiated(request, lambda: document)


def _negotiated(request: Request, make: Callable[[], Document], *, cached: bool = False) -> Response:
    if not _wants_json(request.headers.get("accept", "")):
        return Response(406, {"content-type": "text/plain; charset=utf-8"}, b"")
    return _document(request, make(), "application/json", cached=cached)


def _wants_json(accept: str) -> bool:
    """Whether JSON will do; the protobuf form of v3 is not served, clients take JSON then."""
    ranges = [part.partition(";")[0].strip() for part in accept.split(",")]
    return not accept.strip() or any(part in _JSON for part in ranges)


def _document(request: Request, document: Document, media: str, *, cached: bool = False) -> Response:
    headers = {"content-type": media, "etag": document.etag, "vary": "Accept", **_RANGES}
    if cached:
        headers["cache-control"] = "public, immutable"
    if document.etag in [tag.strip() for tag in request.headers.get("if-none-match", "").split(",")]:
        return Response(304, headers, b"")
    return Response(200, headers, document.body)
