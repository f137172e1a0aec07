"""Where a webhook is, by its ``clientConfig``.

A service is reached at one of its ready endpoints, since nothing routes a sandbox's cluster IPs, else at its
cluster IP.

upstream: staging/src/k8s.io/apiserver/pkg/util/{webhook/client,proxy/proxy}.go
"""

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from kcm_cli.api.resource import GVR
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.types import Tree

_SERVICES = GVR("", "v1", "services")
_SLICES = GVR("discovery.k8s.io", "v1", "endpointslices")
_SLICE_OF = "kubernetes.io/service-name"
_HTTPS_PORT = 443


class TargetError(Exception):
    """There is no such server."""


@dataclass(frozen=True, slots=True)
class Target:
    """A server. ``url`` is how errors name it; ``name`` is what its certificate has to be for. ``ca``: PEM, empty
    for the system's.
    """

    url: str
    path: str
    name: str
    port: int
    ca: str
    service: tuple[str, str] | None = None


def target_of(config: Tree) -> Target:
    """Of a ``clientConfig``. Raises TargetError."""
    ca = _certificates(config.get("caBundle") or "")
    service: Tree | None = config.get("service")
    if service is not None:
        namespace, name = service.get("namespace") or "", service.get("name") or ""
        port, path = service.get("port") or _HTTPS_PORT, service.get("path") or "/"
        host = f"{name}.{namespace}.svc"
        return Target(f"https://{host}:{port}{path}", path, host, port, ca, (namespace, name))
    text = config.get("url") or ""
    if not text:
        raise TargetError("webhook configuration must have either service or URL")
    try:
        url = urlsplit(text)
        port = url.port or _HTTPS_PORT
    except ValueError as error:
        raise TargetError(f"Unparsable URL: {error}") from None
    return _by_url(url, port, ca)


def _by_url(url: SplitResult, port: int, ca: str) -> Target:
    path = url.path or "/"
    return Target(f"{url.scheme}://{url.netloc}{path}", path, url.hostname or "", port, ca)


def _certificates(bundle: str) -> str:
    try:
        return base64.b64decode(bundle, validate=True).decode()
    except ValueError:
        return ""


def address_of(target: Target, store: Store) -> tuple[str, int]:
    """Host and port to connect to. Raises TargetError."""
    if target.service is None:
        return target.name, target.port
    namespace, name = target.service
    stored = store.get(_SERVICES, namespace, name)
    if stored is None:
        raise TargetError(f"service {quote(name)} not found")
    doc: Tree = stored.doc
    spec: Tree = doc.get("spec") or {}
    if spec.get("type") == "ExternalName":
        return spec.get("externalName") or "", target.port
    port = next((each for each in spec.get("ports") or () if each.get("port") == target.port), None)
    if port is None:
        raise TargetError(f"no service port {target.port} found for service {quote(name)}")
    ready = next(_endpoints(store, namespace, name, port.get("name") or ""), None)
    if ready is not None:
        return ready
    if spec.get("clusterIP") == "None":
        raise TargetError('cannot route to service with ClusterIP "None"')
    return spec.get("clusterIP") or "", target.port


def _endpoints(store: Store, namespace: str, service: str, port_name: str) -> Iterator[tuple[str, int]]:
    for stored in store.list(_SLICES, namespace):
        doc: Tree = stored.doc
        if (doc["metadata"].get("labels") or {}).get(_SLICE_OF) != service:
            continue
        ports = [each["port"] for each in doc.get("ports") or () if (each.get("name") or "") == port_name]
        for endpoint in doc.get("endpoints") or ():
            if ports and (endpoint.get("conditions") or {}).get("ready") is not False:
                yield endpoint["addresses"][0], ports[0]
