"""Proxies to the servers that stand for ports of pods, and to those behind Services (routes).

upstream: pkg/registry/core/pod/rest/subresources.go, pkg/registry/core/{service,node}/storage (v1.36)
"""

import ipaddress
from collections.abc import Iterator

from kcm_cli.api.resource import GVR
from kcm_cli.machinery.quoting import quote
from kcm_cli.rest.transport import Response, Stream
from kcm_cli.sandbox.apiserver.errors import bad_request, not_found
from kcm_cli.sandbox.apiserver.kinds.core.connect_options import admit
from kcm_cli.sandbox.apiserver.kinds.core.proxying import passed_on, proxied, unavailable
from kcm_cli.sandbox.apiserver.registry.call import Call
from kcm_cli.sandbox.apiserver.registry.core import Core
from kcm_cli.sandbox.apiserver.store import Stored
from kcm_cli.sandbox.apiserver.types import ApiError, Tree
from kcm_cli.sandbox.apiserver.webhooks.routes import Where

_SCHEMES = ("http", "https")
_PORT_DIGITS = 5
_PODS, _ENDPOINTS = GVR("", "v1", "pods"), GVR("", "v1", "endpoints")


async def of_pod(core: Core, call: Call) -> Response | Stream:
    """Pass a request on to the server that stands for a port of a pod. Raises ApiError."""
    scheme, port, pod = await _asked(core, call)
    _check_proxied(pod)
    where = _server_of(core, pod, port or _first_port(pod.doc, secure=scheme == "https"))
    return await _passed_on(call, where, scheme)


async def of_service(core: Core, call: Call) -> Response | Stream:
    """Pass a request on to the server behind a Service. Raises ApiError."""
    scheme, port, service = await _asked(core, call)
    return await _passed_on(call, _behind(core, call, service, port), scheme)


async def of_node(core: Core, call: Call) -> Response | Stream:
    """Refuse the request. Raises ApiError."""
    await _asked(core, call)
    raise ApiError(501, "NotImplemented", "nodes/proxy needs a real kubelet, which a sandbox does not have")


async def _asked(core: Core, call: Call) -> tuple[str, str, Stored]:
    """Scheme, port and object of a request. Raises ApiError."""
    await admit(core, call)
    scheme, name, port = _proxied_name(call.name, call.resource.kind.lower())
    stored = core.store.get(call.hub.storage, call.namespace, name)
    if stored is None:
        raise not_found("", call.resource.gvr.plural, name)
    return scheme, port, stored


async def _passed_on(call: Call, where: Where, scheme: str) -> Response | Stream:
    asked = proxied(call.request, call.resource.gvr.plural, call.name)
    return await passed_on(asked, where, secure=scheme == "https")


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
