"""Serves /openapi: content negotiation, ETags and ranges.

upstream: kube-openapi pkg/handler, pkg/handler3
"""

import re

from kcm_cli.rest.transport import Request, Response
from kcm_cli.sandbox.apiserver.openapi.document import Document, OpenApi

PROTOBUF_V2 = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
_ANSWERED_V2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""The same media type with characters that Go's parser accepts."""
_PLAIN = {"content-type": "text/plain; charset=utf-8"}
_RANGES = {"accept-ranges": "bytes"}
_RANGE = re.compile(r"(?a)(?=\d|-\s*\d)(\d{0,18})\s*-\s*(\d{0,18})")
_TEXT = {**_PLAIN, "x-content-type-options": "nosniff"}
_JSON = "application/json"
_ACCEPTED = frozenset([_JSON, "application/*", "*/*"])


async def answer(openapi: OpenApi, request: Request) -> Response | None:
    """The response to a request below /openapi; None if the path does not exist."""
    path = request.path
    if path == "/openapi/v2":
        accept = request.headers.get("accept", "")
        if PROTOBUF_V2 in accept or _ANSWERED_V2 in accept:
            return _document(request, await openapi.v2_protobuf(), _ANSWERED_V2)
        return _document(request, await openapi.v2(), _JSON) if _wants_json(request) else _refused()
    if path == "/openapi/v3":
        return _ranged(request, Response(200, {**_PLAIN, **_RANGES}, (await openapi.index()).body))
    if not path.startswith("/openapi/v3/"):
        return None
    place = path.removeprefix("/openapi/v3/")
    document = await openapi.v3(place)
    if document is None:
        return None
    asked = dict(request.query).get("hash", "")
    if asked and asked != (current := openapi.hash(place)):
        return Response(301, {"location": f"{path}?hash={current}"}, b"")
    if not _wants_json(request):
        return _refused()
    return _document(request, document, _JSON, cached=bool(asked))


def _refused() -> Response:
    return Response(406, _PLAIN, b"")


def _wants_json(request: Request) -> bool:
    """Whether the client accepts JSON. v3 is not served as protobuf, for which clients fall back to JSON."""
    accept = request.headers.get("accept", "")
    ranges = [part.partition(";")[0].strip() for part in accept.split(",")]
    return not accept.strip() or any(part in _ACCEPTED for part in ranges)


def _document(request: Request, document: Document, media: str, *, cached: bool = False) -> Response:
    headers = {"content-type": media, "etag": document.etag, "vary": "Accept", **_RANGES}
    if cached:
        headers["cache-control"] = "public, immutable"
    if document.etag in [tag.strip() for tag in request.headers.get("if-none-match", "").split(",")]:
        return Response(304, headers, b"")
    return _ranged(request, Response(200, headers, document.body))


def _ranged(request: Request, whole: Response) -> Response:
    """The requested range of a response. The whole response for several ranges.

    upstream: net/http fs.go#ServeContent
    """
    asked, size = request.headers.get("range", ""), len(whole.body)
    condition = request.headers.get("if-range")
    if not asked or (condition and condition != whole.headers.get("etag")):
        return whole
    parts = [part.strip() for part in asked.removeprefix("bytes=").split(",") if part.strip()]
    found = [_RANGE.fullmatch(part) for part in parts]
    if not asked.startswith("bytes=") or not all(found):
        return Response(416, _TEXT, b"invalid range\n")
    spans = [_span(match[1], match[2], size) for match in found if match]
    if None in spans:
        return Response(416, _TEXT, b"invalid range\n")
    if not (kept := [span for span in spans if span]):
        return whole if not parts else _beyond(size)
    if len(kept) > 1:
        return whole
    part = kept[0]
    headers = {**whole.headers, "content-range": f"bytes {part.start}-{part.stop - 1}/{size}"}
    return Response(206, headers, whole.body[part.start : part.stop])


def _span(first: str, last: str, size: int) -> range | None:
    """The bytes of a range, empty if it begins beyond the end. None if it ends before it begins."""
    if not first:
        return range(max(size - int(last), 0), size)
    if last and int(last) < int(first) < size:
        return None
    return range(int(first), min(int(last) + 1, size) if last else size)


def _beyond(size: int) -> Response:
    return Response(416, {**_TEXT, "content-range": f"bytes */{size}"}, b"invalid range: failed to overlap\n")
