"""Connections to pods: logs, exec, attach and port-forward. Their checks are here, ``core.kubelets`` answers them.

upstream: pkg/registry/core/pod/{strategy.go,rest/log.go,rest/subresources.go}, pkg/apis/core/validation (v1.36)
"""

from msgspec.structs import replace

from kcm_cli.api.resource import GVR
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.times import parse_time
from kcm_cli.rest.transport import Response, Stream
from kcm_cli.sandbox.apiserver.errors import bad_request, forbidden, invalid_kind, not_found, plain
from kcm_cli.sandbox.apiserver.kinds.core.connect_options import admit
from kcm_cli.sandbox.apiserver.registry.call import Call
from kcm_cli.sandbox.apiserver.registry.core import Core
from kcm_cli.sandbox.apiserver.registry.options import integer
from kcm_cli.sandbox.apiserver.registry.reading import fetch
from kcm_cli.sandbox.apiserver.store import Stored
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors

_LISTS = ("initContainers", "containers", "ephemeralContainers")
_NODES = GVR("", "v1", "nodes")
_NOT_POSITIVE = "must be greater than 0"


async def log(core: Core, call: Call) -> Response | Stream:
    """GET .../pods/NAME/log. Raises ApiError."""
    _check_log_options(call)
    pod = _bound(core, call)
    return Response(204, {}, b"") if pod is None else core.kubelets.logs(call, pod)


async def remote_command(core: Core, call: Call) -> Response | Stream:
    """``kubectl exec``, ``kubectl attach``. Raises ApiError."""
    return core.kubelets.remote_command(call, await _running(core, call))


async def port_forward(core: Core, call: Call) -> Response | Stream:
    """``kubectl port-forward``. Raises ApiError."""
    return core.kubelets.port_forward(call, await _running(core, call))


async def _running(core: Core, call: Call) -> Stored:
    """The pod to connect to. Raises ApiError."""
    await admit(core, call)
    _check_verb(core, call)
    pod = _bound(core, call)
    if pod is None:
        raise bad_request(f"pod {call.name} does not have a host assigned")
    return pod


def _check_verb(core: Core, call: Call) -> None:
    """A connection needs the verb create, also if it begins with a GET, as those over WebSockets do. Raises ApiError
    403.

    upstream: pkg/registry/core/pod/rest/authorize.go (AuthorizePodWebsocketUpgradeCreatePermission)
    """
    if call.info.verb == "create":
        return
    decision = core.security.authorizer.authorize(call.user, replace(call.info, verb="create"))
    if not decision.allowed:
        raise forbidden("", "pods", call.name, decision.reason)


def _bound(core: Core, call: Call) -> Stored | None:
    """The pod, or None if it has no node. Raises ApiError 404, 400 if the container does not exist, and 500."""
    stored = fetch(core, call)
    pod: Tree = stored.doc
    if call.subresource != "portforward":
        _check_container(call.query.get("container", ""), pod)
    node = pod["spec"].get("nodeName")
    if not node:
        return None
    _check_node(core, node)
    return stored


def _check_node(core: Core, name: str) -> None:
    """Raises ApiError 404, which names a node as a pod, as upstream, and 500 for a node without an address."""
    node = core.store.get(_NODES, "", name)
    if node is None:
        raise not_found("", "pods", name)
    doc: Tree = node.doc
    if not (doc.get("status") or {}).get("addresses"):
        raise plain("no preferred addresses found; known addresses: []")


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
