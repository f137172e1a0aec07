"""Responses, made from stored bytes without decoding them.

Stored bytes begin with kind and apiVersion (``objects.ordered``). Items of built-in lists have neither, so this prefix
is cut off.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.rest.transport import Response, Stream
from kcm_cli.sandbox.apiserver.registry.warning_headers import header_values
from kcm_cli.sandbox.apiserver.types import ApiError, ResourceInfo

JSON_HEADERS: Mapping[str, str] = {"content-type": "application/json"}
TEXT_HEADERS: Mapping[str, str] = {
    "content-type": "text/plain; charset=utf-8",
    "x-content-type-options": "nosniff",
}


PART = 100
"""Objects that are joined at once. 500 nodes are 5 MB."""


def type_prefix(info: ResourceInfo) -> bytes:
    """The prefix of the stored bytes of a resource's objects."""
    return b'{"kind":"%s","apiVersion":"%s",' % (info.kind.encode(), info.api_version.encode())


def list_metadata(revision: str, more: str, left: int | None) -> Doc:
    """ListMeta. ``more``: the continue token; ``left``: remainingItemCount."""
    metadata: Doc = {"resourceVersion": revision} if revision else {}
    if more:
        metadata["continue"] = more
    if left is not None:
        metadata["remainingItemCount"] = left
    return metadata


def list_parts(
    info: ResourceInfo,
    list_kind: str,
    items: Sequence[bytes],
    *,
    revision: str,
    more: str = "",
    left: int | None = None,
) -> Iterator[bytes]:
    """The body of a list of encoded objects, in parts of up to PART of these. ``more``, ``left``: see
    ``list_metadata``."""
    metadata = list_metadata(revision, more, left)
    if info.custom:
        metadata.setdefault("continue", "")
    head = codec.encode({"kind": list_kind, "apiVersion": info.api_version, "metadata": metadata})[:-1]
    cut, comma = (0, b",") if info.custom else (len(type_prefix(info)), b",{")
    yield head + b',"items":['
    for start in range(0, len(items), PART):
        part = comma.join([data[cut:] for data in items[start : start + PART]])
        yield (comma if start else comma[1:]) + part
    yield b"]}\n"


def doc_response(status: int, doc: Doc) -> Response:
    """A JSON response."""
    return Response(status, JSON_HEADERS, codec.encode(doc) + b"\n")


def text_response(status: int, text: str) -> Response:
    """A plain text response."""
    return Response(status, TEXT_HEADERS, text.encode())


def error_response(error: ApiError) -> Response:
    """A Status response. A client that is to wait finds that in a header, too."""
    headers = {**JSON_HEADERS, **error.headers}
    details = error.status.get("details")
    wait_s = details.get("retryAfterSeconds") if isinstance(details, dict) else None
    if isinstance(wait_s, int) and wait_s > 0:
        headers["retry-after"] = str(wait_s)
    return Response(error.code, headers, codec.encode(error.status) + b"\n")


def with_warnings(answer: Response | Stream, warnings: Iterable[str]) -> Response | Stream:
    """The response with Warning headers, one per line of the header's value."""
    lines = header_values(warnings)
    return with_headers(answer, {"warning": "\n".join(lines)}) if lines else answer


def with_headers(answer: Response | Stream, headers: Mapping[str, str]) -> Response | Stream:
    """The response with further headers."""
    together = {**answer.headers, **headers}
    if isinstance(answer, Response):
        return Response(answer.status, together, answer.body)
    return replace(answer, headers=together)


def indented(answer: Response) -> Response:
    """A JSON response, indented; others unchanged."""
    if not (answer.body and answer.headers.get("content-type", "").startswith(JSON_HEADERS["content-type"])):
        return answer
    return replace(answer, body=msgspec.json.format(answer.body, indent=2).rstrip(b"\n"))
