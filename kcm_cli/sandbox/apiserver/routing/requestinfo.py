"""Resolves methods and paths to verbs, resources, namespaces and names.

upstream: staging/src/k8s.io/apiserver/pkg/endpoints/request/requestinfo.go#NewRequestInfo (v1.36)
"""

from collections.abc import Mapping

from kcm_cli.machinery import fields
from kcm_cli.machinery.errors import FormatError
from kcm_cli.sandbox.apiserver.registry.options import truthy
from kcm_cli.sandbox.apiserver.types import RequestInfo

_VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_NAMESPACE_SUBRESOURCES = ("status", "finalize")


_ENDS = ("watch", "proxy", "watch/", "proxy/")
_FIRST_WORDS = ("watch", "proxy")
"""The prefixes of resources in old paths. ``watch`` still works."""


def unresolvable(path: str) -> str:
    """The error for a path that ends before the resource, otherwise empty."""
    if not path.endswith(_ENDS):
        return ""
    parts = path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:] if parts[0] == "apis" else []
    if len(rest) != 1 or rest[0] not in _FIRST_WORDS:
        return ""
    return f"unable to determine kind and namespace from url, {path}"


def resolve(method: str, path: str, query: Mapping[str, str]) -> tuple[RequestInfo, str]:
    """The meaning of a request, and its path after the subresource."""
    parts = path.strip("/").split("/")
    groupless = parts[0] == "api"
    if len(parts) < 3 or not (groupless or (parts[0] == "apis" and len(parts) > 3)):
        return RequestInfo(method.lower(), path, False), ""
    group, version, rest = ("", parts[1], parts[2:]) if groupless else (parts[1], parts[2], parts[3:])
    verb = _VERBS.get(method, "")
    if rest[0] == "watch" and len(rest) > 1:
        verb, rest = "watch", rest[1:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES:
            rest = rest[2:]
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if not name and verb == "get":
        verb = "watch" if truthy(query.get("watch", "0")) else "list"
        name = selected_name(query.get("fieldSelector", ""))
    elif not name and verb == "delete":
        verb = "deletecollection"
    info = RequestInfo(verb, path, True, group, version, rest[0], subresource, namespace, name)
    return info, "/".join(rest[3:])


def selected_name(selector: str) -> str:
    """The name that a field selector requires, or nothing."""
    if "metadata.name" not in selector:
        return ""
    try:
        name = fields.parse(selector).exact("metadata.name") or ""
    except FormatError:
        return ""
    return name if name not in (".", "..") and not set("/%").intersection(name) else ""
