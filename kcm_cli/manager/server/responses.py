"""Responses in the format of Go's net/http and the API machinery: plain errors, Status objects, negotiated
documents."""

import json

import yaml
from starlette.requests import Request
from starlette.responses import Response

from kcm_cli.machinery.booleans import parse_bool
from kcm_cli.machinery.codec import Doc

_PRETTY_AGENTS = ("curl", "Wget", "Mozilla/5.0")


def first(request: Request, parameter: str) -> str:
    """The first value of a query parameter, which counts in Go; empty if there is none."""
    return next(iter(request.query_params.getlist(parameter)), "")


def text(body: str | bytes, status: int = 200, *, sniff: bool = True) -> Response:
    """A plain text response. ``sniff``: False adds ``X-Content-Type-Options: nosniff``."""
    headers = {"content-type": "text/plain; charset=utf-8"}
    if not sniff:
        headers["x-content-type-options"] = "nosniff"
    return Response(body, status, headers)


def error(body: str, status: int) -> Response:
    """The response of Go's ``http.Error``."""
    return text(f"{body}\n", status, sniff=False)


def not_found() -> Response:
    """The response of Go's ``http.NotFound``."""
    return error("404 page not found", 404)


def status_doc(code: int, reason: str, message: str) -> Doc:
    """A metav1.Status with a failure."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }


def document(request: Request, doc: Doc, status: int = 200, *, media_type: str = "application/json") -> Response:
    """A document in JSON (indented for browsers and curl) or YAML."""
    if media_type == "application/yaml":
        body = yaml.safe_dump(doc, default_flow_style=False)
        return Response(body, status, {"content-type": media_type})
    if is_pretty(request):
        body = json.dumps(doc, indent=2, ensure_ascii=False)
        return Response(body, status, {"content-type": media_type})
    body = json.dumps(doc, separators=(",", ":"), ensure_ascii=False)
    return Response(f"{body}\n", status, {"content-type": media_type})


def unauthorized(request: Request) -> Response:
    """The API machinery's 401."""
    return document(request, status_doc(401, "Unauthorized", "Unauthorized"), 401)


def forbidden(request: Request, user: str, verb: str, path: str, reason: str) -> Response:
    """The API machinery's 403. ``verb``: the method in lower case."""
    message = f'forbidden: User "{user}" cannot {verb} path "{path}"'
    for char, safe in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        message = message.replace(char, safe)
    doc = status_doc(403, "Forbidden", f"{message}: {reason}" if reason else message)
    code = doc.pop("code")
    response = document(request, {**doc, "details": {}, "code": code}, 403)
    response.headers["x-content-type-options"] = "nosniff"
    return response


def internal_error(request: Request, why: str) -> Response:
    """A 500 for a request that could not be authenticated or authorized."""
    raw, query = request.scope["raw_path"].decode("latin-1"), request.scope["query_string"].decode("latin-1")
    target = f"{raw}?{query}" if query else raw
    return error(f'Internal Server Error: "{target}": {why}', 500)


def path_of(request: Request) -> str:
    """The decoded path, as it is authorized and served. (That of ``request.url`` is escaped again.)"""
    path: str = request.scope["path"]
    return path


def is_pretty(request: Request) -> bool:
    """Whether the response is to be indented: as requested, else by the user agent."""
    asked = first(request, "pretty")
    if asked:
        return parse_bool(asked) is not False
    return request.headers.get("user-agent", "").startswith(_PRETTY_AGENTS)
