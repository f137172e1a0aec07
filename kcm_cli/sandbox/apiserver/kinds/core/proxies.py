"""Proxies to the servers that stand for ports of pods, and to those behind Services (routes).

Bodies and redirects are not rewritten.

upstream: apimachinery pkg/util/proxy/upgradeaware.go, pkg/registry/core/pod/rest/subresources.go,
pkg/registry/core/{service,node}/storage (v1.36)
"""

import asyncio
import ipaddress
import os
import ssl
from collections.abc import AsyncIterator, Iterator
from urllib import parse

import httptools

from kcm_cli.api.resource import GVR
from kcm_cli.component.clock import in_real_time
from kcm_cli.machinery.quoting import quote
from kcm_cli.rest.connection import Connection, Incoming
from kcm_cli.rest.transport import Request, Response, Stream
from kcm_cli.sandbox.apiserver.errors import bad_request, not_found, not_implemented
from kcm_cli.sandbox.apiserver.kinds.core.connect_options import admit
from kcm_cli.sandbox.apiserver.registry.call import Call
from kcm_cli.sandbox.apiserver.registry.core import Core
from kcm_cli.sandbox.apiserver.store import Stored
from kcm_cli.sandbox.apiserver.types import ApiError, Tree
from kcm_cli.sandbox.apiserver.webhooks.routes import Where

_CONNECT_S = 30.0
_NOT_PASSED = frozenset((
    "authorization", "connection", "content-length", "expect", "host", "keep-alive", "proxy-authenticate",
    "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
))  # fmt: skip
"""Headers of one connection, and the credentials."""
_SCHEMES = ("http", "https")
_PORT_DIGITS = 5
_PODS, _ENDPOINTS = GVR("", "v1", "pods"), GVR("", "v1", "endpoints")


async def of_pod(core: Core, call: Call) -> Response | Stream:
    """Pass a request on to the server that stands for a port of a pod. Raises ApiError."""
    scheme, port, pod = await _asked(core, call)
    _refuse_upgrade(call)
    _check_proxied(pod)
    where = _server_of(core, pod, port or _first_port(pod.doc, secure=scheme == "https"))
    return await _passed_on(call, where, scheme)


async def of_service(core: Core, call: Call) -> Response | Stream:
    """Pass a request on to the server behind a Service. Raises ApiError."""
    scheme, port, service = await _asked(core, call)
    _refuse_upgrade(call)
    return await _passed_on(call, _behind(core, call, service, port), scheme)


async def of_node(core: Core, call: Call) -> Response | Stream:
    """Refuse the request. Raises ApiError."""
    await _asked(core, call)
    raise not_implemented("nodes/proxy needs a real kubelet, which a sandbox does not have")


async def _asked(core: Core, call: Call) -> tuple[str, str, Stored]:
    """Scheme, port and object of a request. Raises ApiError."""
    await admit(core, call)
    scheme, name, port = _proxied_name(call.name, call.resource.kind.lower())
    stored = core.store.get(call.hub.storage, call.namespace, name)
    if stored is None:
        raise not_found("", call.resource.gvr.plural, name)
    return scheme, port, stored


def _refuse_upgrade(call: Call) -> None:
    if call.request.headers.get("upgrade"):
        raise not_implemented("proxies of a sandbox do not upgrade connections")


async def _passed_on(call: Call, where: Where, scheme: str) -> Response | Stream:
    return await passed_on(call.request, f"/{call.rest.lstrip('/')}", where, secure=scheme == "https")


def _server_of(core: Core, pod: Stored, port: str) -> Where:
    """The server that stands for a port of a pod. Raises ApiError 503."""
    try:
        return core.kubelets.server_of(
            pod, int(port) if port.isascii() and port.isdigit() and len(port) <= _PORT_DIGITS else 0
        )
    except LookupError as error:
        raise unavailable(f"error trying to reach service: {error.args[0]}") from None


def _first_port(pod: Tree, *, secure: bool) -> str:
    ports = (port for container in pod["spec"]["containers"] for port in container.get("ports") or ())
    first: Tree | None = next(ports, None)
    return str(first["containerPort"]) if first is not None else "443" if secure else "80"


def _behind(core: Core, call: Call, stored: Stored, port: str) -> Where:
    """The server of a Service: that of its route, or of a pod behind it. Raises ApiError 404, 503."""
    service: Tree = stored.doc
    name = stored.name
    if port.isascii() and port.isdigit():
        ports = service["spec"].get("ports") or ()
        number = next((each for each in ports if str(each["port"]) == port), None)
        if number is None:
            raise unavailable(f"no service port {port} found for service {quote(name)}")
        port = number.get("name") or ""
    try:
        route = core.routes.of((stored.namespace, name), service)
    except ValueError as error:
        raise unavailable(f"error trying to reach service: {error}") from None
    if route is not None:
        return route
    endpoints = core.store.get(_ENDPOINTS, stored.namespace, name)
    if endpoints is None:
        raise not_found("", call.resource.gvr.plural, name)
    subsets: list[Tree] = endpoints.doc.get("subsets") or []  # type: ignore[assignment]
    refusal = unavailable(f"no endpoints available for service {quote(call.name if subsets else name)}")
    for number_, pod in _pods_of(core, stored.namespace, subsets, port):
        try:
            return _server_of(core, pod, str(number_))
        except ApiError as error:
            refusal = error
    raise refusal


def _pods_of(core: Core, namespace: str, subsets: list[Tree], port: str) -> Iterator[tuple[int, Stored]]:
    """The ready pods behind a port of a Service by its name, each with its own port."""
    for subset in subsets:
        numbers = [each["port"] for each in subset.get("ports") or () if (each.get("name") or "") == port]
        for address in subset.get("addresses") or () if numbers else ():
            ref = address.get("targetRef") or {}
            pod = core.store.get(_PODS, namespace, ref.get("name") or "") if ref.get("kind") == "Pod" else None
            if pod is not None:
                yield numbers[0], pod


def _check_proxied(stored: Stored) -> None:
    """Raises ApiError 400 if the pod's address must not be reached."""
    pod: Tree = stored.doc
    try:
        address = ipaddress.ip_address((pod.get("status") or {}).get("podIP") or "")
    except ValueError:
        raise _not_allowed() from None
    if address.is_loopback or address.is_link_local or address.is_multicast or address.is_unspecified:
        raise _not_allowed()


def _proxied_name(text: str, kind: str) -> tuple[str, str, str]:
    """Scheme, name and port of ``NAME``, ``NAME:PORT`` or ``SCHEME:NAME:PORT``. Raises ApiError 400."""
    parts = text.split(":")
    if len(parts) == 3 and (parts[0] in ("", *_SCHEMES) and parts[1]):
        return parts[0], parts[1], parts[2]
    if len(parts) < 3 and parts[0]:
        return "", parts[0], parts[1] if parts[1:] else ""
    raise bad_request(f'invalid {kind} request "{text}"')


def _not_allowed() -> ApiError:
    return bad_request("address not allowed")


def unavailable(why: str) -> ApiError:
    """503: no server can be reached."""
    return ApiError(503, "ServiceUnavailable", why)


async def passed_on(request: Request, path: str, where: tuple[str, int], *, secure: bool) -> Response | Stream:
    """The response of a server. path: what is left of the request's path. secure: whether the server speaks TLS, whose
    certificate is not verified. Raises ApiError 503."""
    host, port = where
    context = ssl.create_default_context() if secure else None
    if context is not None:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with in_real_time():
            async with asyncio.timeout(_CONNECT_S):
                _, connection = await asyncio.get_running_loop().create_connection(
                    Connection, host, port, ssl=context, server_hostname=host if secure else None
                )
    except (OSError, TimeoutError) as error:
        shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        why = os.strerror(error.errno).lower() if error.errno is not None else str(error) or "i/o timeout"
        raise unavailable(f"error trying to reach service: dial tcp {shown}: connect: {why}") from None
    data = _request(request, path, f"{host}:{port}")
    try:
        if request.method == "HEAD":
            try:
                found = await connection.ask(data, bodiless=True)
            finally:
                connection.close()
            return Response(found.status, _headers(dict(found.headers)), b"")
        incoming = await connection.open(data)
    except (ConnectionError, httptools.HttpParserError) as error:
        connection.close()
        raise unavailable(f"error trying to reach service: {error}") from None
    except BaseException:
        connection.close()
        raise
    return Stream(incoming.status, _headers(dict(incoming.headers)), _body(connection, incoming))


async def _body(connection: Connection, incoming: Incoming) -> AsyncIterator[bytes]:
    try:
        while data := await incoming.read():
            yield data
    finally:
        connection.close()


def _request(request: Request, path: str, host: str) -> bytes:
    query = f"?{parse.urlencode(request.query)}" if request.query else ""
    lines = [f"{request.method} {parse.quote(path, safe=_SAFE)}{query} HTTP/1.1", f"Host: {host}"]
    lines += [f"{name}: {value}" for name, value in request.headers.items() if name.lower() not in _NOT_PASSED]
    lines += [
        f"X-Forwarded-Uri: {parse.quote(request.path, safe=_SAFE)}",
        "X-Forwarded-Proto: https",
        "Connection: close",
    ]
    if request.body or request.method in ("POST", "PUT", "PATCH"):
        lines.append(f"Content-Length: {len(request.body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace") + request.body


_SAFE = "/:@!$&'()*+,;=~-._"


def _headers(headers: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in _NOT_PASSED}
