"""Routing: finds the resource of a request and checks that it has the verb.

upstream: apiserver pkg/endpoints/installer.go, v1.36
"""

from kcm_cli.machinery import names
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.errors import (
    bad_request,
    method_not_allowed,
    no_such_path,
    not_found,
    verb_not_supported,
)
from kcm_cli.sandbox.apiserver.registry.catalog import Catalog, Served
from kcm_cli.sandbox.apiserver.types import RequestInfo, ResourceInfo

PLAIN_404 = "404 page not found\n"
_METHODS = frozenset(["GET", "POST", "PUT", "PATCH", "DELETE"])
_PROXIED = frozenset(["HEAD", "OPTIONS"])
"""Further methods of proxy subresources."""
_WITHOUT_NAMESPACE = frozenset(["list", "watch", "create"])
_OF_OBJECTS = frozenset(["get", "update", "patch", "delete"])
_BY_PATH = frozenset(["create", "update", "patch"])
"""Verbs of requests whose name is from the path."""


UNAVAILABLE = "service unavailable\n"


class Unavailable(Exception):
    """503 in plain text: the group is served by another server (APIService), which cannot be reached."""


class NoSuchGroup(Exception):
    """404 in plain text, not a Status: the group is not served."""


def route(catalog: Catalog, info: RequestInfo, method: str, rest: str, path: str, warnings: list[str]) -> Served:
    """The resource of a request. Adds the warning of a deprecated custom resource, even if the request is refused.
    Raises ApiError 404, 405; NoSuchGroup; Unavailable.
    """
    if path.startswith("//"):
        raise NoSuchGroup
    served = catalog.find(info.group, info.version, info.plural)
    if served is None:
        if catalog.is_remote(info.group, info.version):
            raise Unavailable
        if not catalog.has_group(info.group) or catalog.is_custom(info.group):
            raise NoSuchGroup
        raise no_such_path()
    if served.info.custom:
        _check_scope(served, info)
        if served.warning:
            warnings.append(served.warning)
        _route_custom(served, info)
        _check_name(info)
        return served
    resource = served.info
    own = path.partition("/proxy/")[0] if info.subresource == "proxy" else path
    if "//" in own:
        _check_unnamed(resource, info, own)
    elif resource.namespaced:
        if not info.namespace and _has_name(info, path):
            raise no_such_path()
    elif info.namespace and (resource.gvr.group_resource != "namespaces" or _nested(info, path)):
        raise no_such_path()
    if rest and not (info.subresource == "proxy" and "proxy" in served.subresources):
        raise no_such_path()
    _check_verb(served, info, method)
    _check_name(info)
    return served


def _check_name(info: RequestInfo) -> None:
    """Raises ApiError 400 if no object can have the name.

    upstream: apiserver pkg/registry/generic/registry/store.go#NamespaceKeyFunc
    """
    if info.verb in _OF_OBJECTS and (wrong := names.path_segment(info.name)):
        raise bad_request(f"Name parameter invalid: {quote(info.name)}: {';'.join(wrong)}")


def _check_unnamed(resource: ResourceInfo, info: RequestInfo, path: str) -> None:
    """An empty namespace (``/namespaces//pods``) means all namespaces, for lists. Raises ApiError 400, 404."""
    _, found, rest = path.partition("/namespaces//")
    if not found or "//" in rest or bool(rest) != resource.namespaced:
        raise no_such_path()
    if rest and info.verb not in _WITHOUT_NAMESPACE:
        raise bad_request("Namespace parameter required.")


def _check_scope(served: Served, info: RequestInfo) -> None:
    """Raises NoSuchGroup."""
    everywhere = served.info.namespaced and not info.namespace
    if (everywhere and info.verb not in ("list", "watch")) or (info.namespace and not served.info.namespaced):
        raise NoSuchGroup


def _route_custom(served: Served, info: RequestInfo) -> None:
    """Custom resources have another router than built-in ones. Raises ApiError 404, 405.

    upstream: apiextensions-apiserver pkg/apiserver/customresource_handler.go#ServeHTTP
    """
    if info.subresource and info.subresource not in served.subresources:
        raise not_found(*served.info.named, info.name)
    verbs = served.subresources[info.subresource].verbs if info.subresource else served.info.verbs
    if info.verb not in verbs:
        raise verb_not_supported(served.info, info.verb)
    if info.verb in ("update", "patch", "delete") and not info.name:
        raise bad_request("name must be provided")


def _has_name(info: RequestInfo, path: str) -> bool:
    """Whether the path names an object (``info.name`` may also be from a field selector)."""
    if info.verb in _BY_PATH:
        return bool(info.name)
    rest = path.replace("/namespaces//", "/").rstrip("/").partition(f"/{info.version}/")[2]
    words = rest.removeprefix("watch/").split("/")
    return len(words) > (3 if words[0] == "namespaces" != info.plural else 1)


def _nested(info: RequestInfo, path: str) -> bool:
    """Whether a path has namespaces in a namespace."""
    return f"/namespaces/{info.namespace}/namespaces" in path


def _check_verb(served: Served, info: RequestInfo, method: str) -> None:
    verbs = served.info.verbs
    old_watch = info.verb == "watch" and info.path.startswith(f"{served.info.gvr.base}/watch/")
    if old_watch and (info.subresource or "watch" not in verbs):
        raise no_such_path()
    if old_watch and method != "GET":
        raise method_not_allowed()
    if info.subresource:
        subresource = served.subresources.get(info.subresource)
        if subresource is None:
            raise no_such_path()
        verbs = subresource.verbs
    if info.subresource == "proxy" and method in _PROXIED:
        return
    if info.verb == "watch" and "list" in verbs:
        return  # the path is that of the list
    collection = not _has_name(info, info.path)
    everywhere = collection and served.info.namespaced and not info.namespace
    if (everywhere and "list" not in verbs) or not (collection or info.subresource or _OF_OBJECTS.intersection(verbs)):
        raise no_such_path()
    if method not in _METHODS or info.verb not in verbs:
        raise method_not_allowed()
    if info.verb in ("update", "patch", "delete") and collection:
        raise method_not_allowed()
    if info.verb == "create" and not info.subresource and not collection:
        raise method_not_allowed()
    if everywhere and info.verb not in ("list", "watch") and "//" not in info.path:
        raise method_not_allowed()
