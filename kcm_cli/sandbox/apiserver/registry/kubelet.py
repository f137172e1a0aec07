"""Subresources that kubelets serve: logs, exec, attach, port-forward, proxies.

The API server's checks are here, the simulated kubelet is ``kubelet_api``. Proxies reach the servers that stand for
ports of pods (``forward``) and for Services (routes).

upstream: pkg/registry/core/pod/{strategy.go,rest/log.go,rest/subresources.go}, pkg/registry/core/service/storage,
pkg/apis/core/validation (v1.36)
"""

import ipaddress
from collections.abc import Iterator

from kcm_cli.api.resource import GVR
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.quoting import quote
from kcm_cli.machinery.times import parse_time
from kcm_cli.rest.transport import Response, Stream
from kcm_cli.sandbox.apiserver.errors import bad_request, invalid_kind, not_found
from kcm_cli.sandbox.apiserver.registry import errors as api_errors
from kcm_cli.sandbox.apiserver.registry.call import Call
from kcm_cli.sandbox.apiserver.registry.core import Core
from kcm_cli.sandbox.apiserver.registry.options import integer
from kcm_cli.sandbox.apiserver.registry.reading import fetch
from kcm_cli.sandbox.apiserver.store import Stored
from kcm_cli.sandbox.apiserver.types import ApiError, FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors
from kcm_cli.sandbox.apiserver.webhooks.routes import Where
from kcm_cli.sandbox.kubelet_api.pods import PODS
from kcm_cli.sandbox.kubelet_api.server import KubeletApi
from kcm_cli.sandbox.streams.proxy import passed_on, unavailable

_LISTS = ("initContainers", "containers", "ephemeralContainers")
_NOT_POSITIVE = "must be greater than 0"
_SCHEMES = ("http", "https")
_PORT_DIGITS = 5
_ENDPOINTS = GVR("", "v1", "endpoints")


async def answer(core: Core, inside: KubeletApi, call: Call) -> Response | Stream:
    """The response to a request. Raises ApiError."""
    if call.subresource == "proxy":
        return await _proxied(core, inside, call)
    if call.resource.gvr.plural == "pods":
        if call.subresource == "log":
            _check_log_options(call)
            pod = _bound(core, call)
            return Response(204, {}, b"") if pod is None else inside.logs(call, pod)
        else:
            pod = _bound(core, call)
            if pod is None:
                raise bad_request(f"pod {call.name} does not have a host assigned")
            return (
                inside.port_forward(call, pod)
                if call.subresource == "portforward"
                else inside.remote_command(call, pod)
            )
    what = f"{call.resource.gvr.plural}/{call.subresource}"
    raise api_errors.not_implemented(f"{what} needs a real kubelet, which a sandbox does not have")


async def _proxied(core: Core, inside: KubeletApi, call: Call) -> Response | Stream:
    """Pass a request on to the server behind a pod or Service. Raises ApiError."""
    scheme, name, port = _proxied_name(call.name, call.resource.kind.lower())
    stored = _found(core, call, name)
    if call.resource.gvr.plural == "nodes":
        raise api_errors.not_implemented("nodes/proxy needs a real kubelet, which a sandbox does not have")
    if call.request.headers.get("upgrade"):
        raise api_errors.not_implemented("proxies of a sandbox do not upgrade connections")
    if call.resource.gvr.plural == "pods":
        _check_proxied(stored)
        where = _of_pod(inside, stored, port or _first_port(stored.doc, secure=scheme == "https"))
    else:
        where = _of_service(core, inside, call, stored, port)
    return await passed_on(call.request, f"/{call.rest.lstrip('/')}", where, secure=scheme == "https")


def _of_pod(inside: KubeletApi, pod: Stored, port: str) -> Where:
    """The server that stands for a port of a pod. Raises ApiError 503."""
    try:
        return inside.server_of(
            pod, int(port) if port.isascii() and port.isdigit() and len(port) <= _PORT_DIGITS else 0
        )
    except LookupError as error:
        raise unavailable(f"error trying to reach service: {error.args[0]}") from None


def _first_port(pod: Tree, *, secure: bool) -> str:
    ports = (port for container in pod["spec"]["containers"] for port in container.get("ports") or ())
    first: Tree | None = next(ports, None)
    return str(first["containerPort"]) if first is not None else "443" if secure else "80"


def _of_service(core: Core, inside: KubeletApi, call: Call, stored: Stored, port: str) -> Where:
    """The server of a Service: that of its route, or of a pod behind it. Raises ApiError 503."""
    service: Tree = stored.doc
    name = stored.name
    if port.isascii() and port.isdigit():
        ports = service["spec"].get("ports") or ()
        number = next((each for each in ports if str(each["port"]) == port), None)
        if number is None:
            raise unavailable(f"no service port {port} found for service {quote(name)}")
        port = number.get("name") or ""
    try:
        route = inside.routes.of((stored.namespace, name), service)
    except ValueError as error:
        raise unavailable(f"error trying to reach service: {error}") from None
    if route is not None:
        return route
    refusal = unavailable(f"no endpoints available for service {quote(call.name)}")
    for number_, pod in _pods_of(core, stored, port):
        try:
            return _of_pod(inside, pod, str(number_))
        except ApiError as error:
            refusal = error
    raise refusal


def _pods_of(core: Core, service: Stored, port: str) -> Iterator[tuple[int, Stored]]:
    """The ready pods behind a port of a Service by its name, each with its own port."""
    endpoints = core.store.get(_ENDPOINTS, service.namespace, service.name)
    subsets: list[Tree] = (endpoints.doc.get("subsets") or []) if endpoints is not None else []  # type: ignore[assignment]
    for subset in subsets:
        numbers = [each["port"] for each in subset.get("ports") or () if (each.get("name") or "") == port]
        for address in subset.get("addresses") or () if numbers else ():
            ref = address.get("targetRef") or {}
            pod = core.store.get(PODS, service.namespace, ref.get("name") or "") if ref.get("kind") == "Pod" else None
            if pod is not None:
                yield numbers[0], pod


def _bound(core: Core, call: Call) -> Stored | None:
    """The pod, or None if it has no node. Raises ApiError 404, and 400 if the container does not exist."""
    stored = fetch(core, call)
    pod: Tree = stored.doc
    if call.subresource != "portforward":
        _check_container(call.query.get("container", ""), pod)
    return stored if pod["spec"].get("nodeName") else None


def _check_container(name: str, pod: Tree) -> None:
    spec, pod_name = pod["spec"], pod["metadata"]["name"]
    known = [one["name"] for each in _LISTS for one in spec.get(each) or ()]
    if not name and len(spec.get("containers") or ()) > 1:
        choice = " ".join(known)
        raise bad_request(f"a container name must be specified for pod {pod_name}, choose one of: [{choice}]")
    if name and name not in known:
        raise bad_request(f"container {name} is not valid for pod {pod_name}")


def _check_log_options(call: Call) -> None:
    """Raises ApiError 400, 422."""
    query = call.query
    tail, limit, since = (integer(query, name) for name in ("tailLines", "limitBytes", "sinceSeconds"))
    if query.get("sinceTime"):
        try:
            parse_time(query["sinceTime"])
        except FormatError as error:
            raise bad_request(str(error)) from None
    found: list[FieldError] = []
    if tail is not None and tail < 0:
        found.append(errors.invalid("tailLines", tail, errors.NEGATIVE))
    if limit is not None and limit < 1:
        found.append(errors.invalid("limitBytes", limit, _NOT_POSITIVE))
    if since is not None and query.get("sinceTime"):
        found.append(errors.forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    elif since is not None and since < 1:
        found.append(errors.invalid("sinceSeconds", since, _NOT_POSITIVE))
    if "stream" in query:
        found.append(errors.forbidden("stream", "may not be specified"))
    if found:
        raise invalid_kind("", "PodLogOptions", call.name, found)


def _check_proxied(stored: Stored) -> None:
    """Raises ApiError 400 if the pod's address must not be reached."""
    pod: Tree = stored.doc
    try:
        address = ipaddress.ip_address((pod.get("status") or {}).get("podIP") or "")
    except ValueError:
        raise _not_allowed() from None
    if address.is_loopback or address.is_link_local or address.is_multicast or address.is_unspecified:
        raise _not_allowed()


def _found(core: Core, call: Call, name: str) -> Stored:
    """The object of a proxy request. Raises ApiError 404."""
    stored = core.store.get(call.hub.storage, call.namespace, name)
    if stored is None:
        raise not_found("", call.resource.gvr.plural, name)
    return stored


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
