"""What admission sees of exec, attach, port forwarding and proxies: the options that path and query state.

upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/rest.go, staging/src/k8s.io/api/core/v1 (v1.36)
"""

from kcm_cli.sandbox.apiserver.errors import bad_request
from kcm_cli.sandbox.apiserver.registry.call import Call
from kcm_cli.sandbox.apiserver.registry.core import Core
from kcm_cli.sandbox.apiserver.registry.requestinfo import truthy
from kcm_cli.sandbox.apiserver.types import Attributes, Tree

_STREAMS = ("stdin", "stdout", "stderr", "tty")
_MOST_PORT = (1 << 31) - 1


async def admit(core: Core, call: Call) -> None:
    """Ask admission about a connection, before its object is looked at. Raises ApiError."""
    attrs = Attributes(
        "CONNECT", call.resource, call.subresource, call.namespace, call.name, call.user, options(call), None,
        warnings=call.warnings,
    )  # fmt: skip
    await core.admission.mutate(attrs)
    await core.admission.validate(attrs)


def options(call: Call) -> Tree:
    """PodExecOptions, NodeProxyOptions and so on. Raises ApiError 400."""
    found: Tree = {"kind": call.served.subresources[call.subresource].kind, "apiVersion": "v1"}
    if call.subresource == "proxy":
        path = call.request.path.partition(f"/{call.resource.gvr.plural}/{call.name}/proxy")[2]
        return {**found, "path": path} if path else found
    if call.subresource == "portforward":
        ports = [_port(text) for text in _values(call, "ports")]
        return {**found, "ports": ports} if ports else found
    found |= {name: True for name in _STREAMS if name in call.query and truthy(call.query[name])}
    if container := call.query.get("container"):
        found["container"] = container
    if call.subresource == "exec":
        found["command"] = _values(call, "command") or None
    return found


def _values(call: Call, name: str) -> list[str]:
    return [value for key, value in call.request.query if key == name]


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= _MOST_PORT):
        raise bad_request(f'cannot convert to []int32: strconv.ParseUint: parsing "{text}": invalid syntax')
    return int(text)
