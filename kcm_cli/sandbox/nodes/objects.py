"""The objects that volumes and variables are filled from, as kubelets know them.

upstream: pkg/kubelet/{configmap,secret}
"""

import base64
import binascii
from collections.abc import Mapping

from kcm_cli.api.core import Service
from kcm_cli.runtime.informers import Informers
from kcm_cli.sandbox.nodes.environment import MASTER, of_service, of_services
from kcm_cli.sandbox.views import CONFIG_MAP_KEYS, NODES, SECRET_KEYS, SERVICES, SimulatedPod, TokenSource


class CachedObjects:
    """Reads objects from informers' caches (``volumes.Objects``)."""

    def __init__(self, informers: Informers) -> None:
        self._config_maps = informers.get(CONFIG_MAP_KEYS)
        self._secrets = informers.get(SECRET_KEYS)
        self._nodes = informers.get(NODES)
        self._services = informers.get(SERVICES)
        self._variables: dict[str, dict[str, str]] = {}
        """The variables for the Services of each namespace, and under the empty name for the API server; computed when
        needed."""
        self._of_service: dict[str, dict[str, str]] = {}
        self._services.listen(on_add=self._forget, on_update=lambda _, new: self._forget(new), on_delete=self._forget)

    def config_map(self, namespace: str, name: str, *, binary: bool = True) -> Mapping[str, bytes] | None:
        found = self._config_maps.store.get(f"{namespace}/{name}")
        return None if found is None else texts(found.data) | (decoded(found.binary_data) if binary else {})

    def secret(self, namespace: str, name: str) -> Mapping[str, bytes] | None:
        found = self._secrets.store.get(f"{namespace}/{name}")
        return None if found is None else decoded(found.data)

    def allocatable(self, node: str) -> Mapping[str, str]:
        found = self._nodes.store.get(node)
        return (found.status.allocatable if found is not None else None) or {}

    def services(self, namespace: str, *, links: bool) -> Mapping[str, str]:
        master = self._variables.get("")
        if master is None:
            found = self._services.store.get("/".join(MASTER))
            master = self._variables[""] = {} if found is None else of_service(found)
        if not links:
            return master
        own = self._variables.get(namespace)
        if own is None:
            services = self._services.store.list(namespace)
            if not services:
                return master
            own = self._variables[namespace] = master | of_services(map(self._variables_of, services))
        return own

    def _variables_of(self, service: Service) -> dict[str, str]:
        key = f"{service.namespace}/{service.name}"
        known = self._of_service.get(key)
        if known is None:
            known = self._of_service[key] = of_service(service)
        return known

    def _forget(self, service: Service) -> None:
        self._of_service.pop(f"{service.namespace}/{service.name}", None)
        if (service.namespace, service.name) == MASTER:
            self._variables.clear()
        self._variables.pop(service.namespace, None)

    def token(self, pod: SimulatedPod, source: TokenSource) -> bytes:
        """Return a placeholder instead of a real token: hardly any command depends on it."""
        return b"token"


def texts(data: Mapping[str, object] | None) -> dict[str, bytes]:
    """Return the ``data`` of a ConfigMap as bytes."""
    return {
        key: value.encode("utf-8", "surrogatepass") for key, value in (data or {}).items() if isinstance(value, str)
    }


def decoded(data: Mapping[str, object] | None) -> dict[str, bytes]:
    """Decode the ``data`` of a Secret or the ``binaryData`` of a ConfigMap. Values that are not base64 are left out."""
    found: dict[str, bytes] = {}
    for key, value in (data or {}).items():
        try:
            found[key] = base64.b64decode(str(value), validate=True)
        except (binascii.Error, ValueError):
            continue
    return found
