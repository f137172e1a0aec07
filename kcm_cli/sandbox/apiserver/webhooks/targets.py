"""The address of a webhook, by its ``clientConfig``.

A Service is reached by its route, or at an endpoint that is no pod. Pods and cluster IPs cannot be reached.

upstream: staging/src/k8s.io/apiserver/pkg/util/{webhook/client,proxy/proxy}.go
"""

import posixpath
import re
from collections.abc import Iterator

import msgspec

from kcm_cli.api.discovery import SERVICE_NAME
from kcm_cli.api.resource import GVR
from kcm_cli.machinery import urls
from kcm_cli.machinery.formats import decoded_base64
from kcm_cli.machinery.integers import parse_int64
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.types import Tree
from kcm_cli.sandbox.apiserver.webhooks.routes import ANNOTATION, Key, Routes, Where

_SERVICES = GVR("", "v1", "services")
SLICES = GVR("discovery.k8s.io", "v1", "endpointslices")
_HTTPS_PORT = 443
_LAST_PORT = 65535
_IN_CLUSTER = re.compile(r"(?:.*\.)?(?:svc|cluster\.local)\.?", re.IGNORECASE)
_OF_SERVICE = re.compile(r"([^.]+)\.([^.]+)\.svc(?:\.cluster\.local)?\.?", re.IGNORECASE)


class TargetError(Exception):
    """The server cannot be determined or reached."""


class Target(msgspec.Struct, frozen=True):
    """A server. url: its URL in errors. name: the host name in its certificate. ca: PEM; empty for the system's."""

    url: str
    path: str
    name: str
    port: int
    ca: str
    service: Key | None = None


def target_of(config: Tree) -> Target:
    """The target of a ``clientConfig``. Raises TargetError."""
    ca = _certificates(config.get("caBundle") or "")
    service: Tree | None = config.get("service")
    if service is not None:
        namespace, name = service.get("namespace") or "", service.get("name") or ""
        port, path = service.get("port") or _HTTPS_PORT, _cleaned(service.get("path") or "/")
        host = f"{name}.{namespace}.svc"
        return Target(f"https://{host}:{port}{path}", path, host, port, ca, (namespace, name))
    text = config.get("url") or ""
    if not text:
        raise TargetError("webhook configuration must have either service or URL")
    try:
        url = urls.parse(text)
    except urls.UrlError as error:
        raise TargetError(f"Unparsable URL: {error}") from None
    port = parse_int64(url.port or str(_HTTPS_PORT)) or 0
    if not 0 < port <= _LAST_PORT:
        raise TargetError(f"dial tcp: address {url.port}: invalid port")
    path = _cleaned(url.path)
    return Target(f"{url.scheme}://{url.host}{path}", path, url.hostname.lower(), port, ca)


def _cleaned(path: str) -> str:
    """The path without empty parts. envtest writes ``//validate``."""
    return posixpath.normpath(f"/./{path}")


def _certificates(bundle: str) -> str:
    """The bundle as text of one character a byte: comments in it may be in any encoding."""
    return decoded_base64(bundle).decode("latin-1")


def routed(config: Tree, store: Store, routes: Routes) -> bool:
    """Whether a ``clientConfig`` names a Service with a route."""
    try:
        target = target_of(config)
        service = target.service or _named(target.name)
        return service is not None and _route(service, _service(service, store), routes) is not None
    except TargetError:
        return False


def resolve(target: Target, store: Store, routes: Routes) -> Where:
    """Host and port to connect to. Raises TargetError."""
    if target.service is None:
        return _outside(target.name, target.port, store, routes)
    namespace, name = target.service
    doc = _service(target.service, store)
    spec: Tree = (doc or {}).get("spec") or {}
    external = spec.get("type") == "ExternalName"
    port = next((each for each in spec.get("ports") or () if each.get("port") == target.port), None)
    if doc is not None and port is None and not external:
        raise TargetError(f"no service port {target.port} found for service {quote(name)}")
    route = _route(target.service, doc, routes)
    if route is not None:
        return route
    if doc is None:
        raise TargetError(f"service {quote(name)} not found")
    if external:
        return _outside(spec.get("externalName") or "", target.port, store, routes)
    own = next(_endpoints(store, namespace, name, (port or {}).get("name") or ""), None)
    if own is not None:
        return own
    if spec.get("clusterIP") == "None":
        raise TargetError('cannot route to service with ClusterIP "None"')
    raise TargetError(unrouted(target.service))


def unrouted(service: Key) -> str:
    """The error for a Service without a route, and the solution."""
    namespace, name = service
    return (
        f"nothing runs behind service {quote(name)}, since pods of a sandbox are simulated: route it to your server "
        f'with the annotation {ANNOTATION}: "127.0.0.1:PORT" of the Service, with kcm sandbox '
        f'--route {name}.{namespace}=PORT or, in tests, with sandbox.route("{name}.{namespace}", PORT)'
    )


def in_cluster(host: str) -> bool:
    """Whether a host name can only be resolved by cluster DNS."""
    return _IN_CLUSTER.fullmatch(host) is not None


def _outside(host: str, port: int, store: Store, routes: Routes) -> Where:
    """Host and port of a host name. Names of Services use their routes. Raises TargetError."""
    service = _named(host)
    if service is not None:
        route = _route(service, _service(service, store), routes)
        if route is None:
            raise TargetError(f"dial tcp: lookup {host}: no such host; {unrouted(service)}")
        return route
    return host, port


def _service(key: Key, store: Store) -> Tree | None:
    stored = store.get(_SERVICES, *key)
    return None if stored is None else stored.doc


def _named(host: str) -> Key | None:
    found = _OF_SERVICE.fullmatch(host)
    return None if found is None else (found[2].lower(), found[1].lower())


def _route(service: Key, doc: Tree | None, routes: Routes) -> Where | None:
    try:
        return routes.of(service, doc)
    except ValueError as error:
        raise TargetError(
            f"the annotation {ANNOTATION} of service {quote(service[1])} cannot be used: {error}"
        ) from None


def slices_of(store: Store, namespace: str, service: str) -> Iterator[Tree]:
    """The EndpointSlices of a Service."""
    for stored in store.list(SLICES, namespace):
        if service_of(stored.doc) == service:
            yield stored.doc


def service_of(piece: Tree) -> str:
    """The name of an EndpointSlice's Service; empty without one."""
    found: str = (piece["metadata"].get("labels") or {}).get(SERVICE_NAME, "")
    return found


def _endpoints(store: Store, namespace: str, service: str, port_name: str) -> Iterator[Where]:
    """The ready endpoints that are no pods."""
    for doc in slices_of(store, namespace, service):
        ports = [each.get("port") for each in doc.get("ports") or () if (each.get("name") or "") == port_name]
        for endpoint in doc.get("endpoints") or ():
            if (endpoint.get("targetRef") or {}).get("kind") == "Pod" or not ports or not ports[0]:
                continue
            if (endpoint.get("conditions") or {}).get("ready") is not False:
                yield endpoint["addresses"][0], ports[0]
