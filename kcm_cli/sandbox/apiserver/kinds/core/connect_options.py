"""Admission (CONNECT) of exec, attach, port-forward and proxies, with the options in path and query.

upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/rest.go, staging/src/k8s.io/api/core/v1,
staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/conversion.go (v1.36)
"""

from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.errors import bad_request
from kcm_cli.sandbox.apiserver.registry.call import Call
from kcm_cli.sandbox.apiserver.registry.core import Core
from kcm_cli.sandbox.apiserver.registry.options import truthy
from kcm_cli.sandbox.apiserver.types import Attributes, Tree

_STREAMS = ("stdin", "stdout", "stderr", "tty")
_PORT_DIGITS, _MOST_PORT = 5, (1 << 16) - 1


async def admit(core: Core, call: Call) -> None:
    """Run admission for a connection, before its object is read. Raises ApiError."""
    attrs = Attributes(
        "CONNECT", call.resource, call.subresource, call.namespace, call.name, call.user, options(call), None,
        warnings=call.warnings,
    )  # fmt: skip
    await core.admission.mutate(attrs)
    await core.admission.validate(attrs)


def options(call: Call) -> Tree:
    """The options as PodExecOptions, NodeProxyOptions and so on. Raises ApiError 400."""
    found: Tree = {"kind": call.served.subresources[call.subresource].kind, "apiVersion": "v1"}
    if call.subresource == "proxy":
        path = call.request.path.partition(f"/{call.resource.gvr.plural}/{call.name}/proxy")[2]
        return {**found, "path": path} if path else found
    if call.subresource == "portforward":
        return {**found, "ports": numbers} if (numbers := ports(call)) else found
    found |= {name: True for name in _STREAMS if name in call.query and truthy(call.query[name])}
    if container := call.query.get("container"):
        found["container"] = container
    if call.subresource == "exec":
        found["command"] = _values(call, "command") or None
    return found


def ports(call: Call) -> list[int]:
    """The ports to forward, each 0 to 65535. Raises ApiError 400."""
    return [_port(text) for value in _values(call, "ports") for text in value.split(",")]


def _values(call: Call, name: str) -> list[str]:
    return [value for key, value in call.request.query if key == name]


def _port(text: str) -> int:
    digits = text.lstrip("0") or text[:1]
    if not (text.isascii() and text.isdigit()):
        why = "invalid syntax"
    elif len(digits) > _PORT_DIGITS or int(digits) > _MOST_PORT:
        why = "value out of range"
    else:
        return int(digits)
    raise bad_request(f"cannot convert to []int32: strconv.ParseUint: parsing {quote(text)}: {why}")
