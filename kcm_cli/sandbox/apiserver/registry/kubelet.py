"""Subresources that kubelets serve: logs, exec, attach, port-forward, proxies.

The API server's checks are here, the simulated kubelet is ``streams.inside``. Proxies are not supported.

upstream: pkg/registry/core/pod/{strategy.go,rest/log.go,rest/subresources.go}, pkg/apis/core/validation (v1.36)
"""

import ipaddress

from kcm_cli.machinery.errors import FormatError
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
from kcm_cli.sandbox.streams.inside import Inside

_LISTS = ("initContainers", "containers", "ephemeralContainers")
_NOT_POSITIVE = "must be greater than 0"
_SCHEMES = ("http", "https")


def answer(core: Core, inside: Inside, call: Call) -> Response | Stream:
    """The response to a request. Raises ApiError."""
    if call.resource.gvr.plural == "pods":
        if call.subresource == "proxy":
            _check_proxied(core, call)
        elif call.subresource == "log":
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
    else:
        _found(core, call)
    what = f"{call.resource.gvr.plural}/{call.subresource}"
    raise api_errors.not_implemented(f"{what} needs a real kubelet, which a sandbox does not have")


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


def _check_proxied(core: Core, call: Call) -> None:
    """Raises ApiError 404, and 400 if the pod's address must not be reached."""
    pod: Tree = _found(core, call).doc
    try:
        address = ipaddress.ip_address((pod.get("status") or {}).get("podIP") or "")
    except ValueError:
        raise _not_allowed() from None
    if address.is_loopback or address.is_link_local or address.is_multicast or address.is_unspecified:
        raise _not_allowed()


def _found(core: Core, call: Call) -> Stored:
    """The object of a proxy request: ``NAME``, ``NAME:PORT`` or ``SCHEME:NAME:PORT``. Raises ApiError 400, 404."""
    name = _proxied_name(call.name, call.resource.kind.lower())
    stored = core.store.get(call.hub.storage, call.namespace, name)
    if stored is None:
        raise not_found("", call.resource.gvr.plural, name)
    return stored


def _proxied_name(text: str, kind: str) -> str:
    parts = text.split(":")
    if len(parts) == 3 and (parts[0] in ("", *_SCHEMES) and parts[1]):
        return parts[1]
    if len(parts) < 3 and parts[0]:
        return parts[0]
    raise bad_request(f'invalid {kind} request "{text}"')


def _not_allowed() -> ApiError:
    return bad_request("address not allowed")
