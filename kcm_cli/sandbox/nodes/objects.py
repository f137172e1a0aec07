"""What kubelets know of the objects that are in volumes and variables.

upstream: pkg/kubelet/{configmap,secret}
"""

import base64
import binascii
from collections.abc import Mapping

from kcm_cli.runtime.informers import Informers
from kcm_cli.sandbox.views import CONFIG_MAP_KEYS, NODES, SECRET_KEYS, SimulatedPod, TokenSource


class CachedObjects:
    """As informers show them (``volumes.Objects``)."""

    def __init__(self, informers: Informers) -> None:
        self._config_maps = informers.get(CONFIG_MAP_KEYS)
        self._secrets = informers.get(SECRET_KEYS)
        self._nodes = informers.get(NODES)

    def config_map(self, namespace: str, name: str, *, binary: bool = True) -> Mapping[str, bytes] | None:
        found = self._config_maps.store.get(f"{namespace}/{name}")
        return None if found is None else texts(found.data) | (decoded(found.binary_data) if binary else {})

    def secret(self, namespace: str, name: str) -> Mapping[str, bytes] | None:
        found = self._secrets.store.get(f"{namespace}/{name}")
        return None if found is None else decoded(found.data)

    def allocatable(self, node: str) -> Mapping[str, str]:
        found = self._nodes.store.get(node)
        return (found.status.allocatable if found is not None else None) or {}

    def token(self, pod: SimulatedPod, source: TokenSource) -> bytes:
        """Not a real one: what a program does hardly depends on it."""
        return b"token"


def texts(data: Mapping[str, object] | None) -> dict[str, bytes]:
    """Of a ConfigMap."""
    return {
        key: value.encode("utf-8", "surrogatepass") for key, value in (data or {}).items() if isinstance(value, str)
    }


def decoded(data: Mapping[str, object] | None) -> dict[str, bytes]:
    """Of a Secret, or binary ones of a ConfigMap. What is not base64 is left out."""
    found: dict[str, bytes] = {}
    for key, value in (data or {}).items():
        try:
            found[key] = base64.b64decode(str(value), validate=True)
        except (binascii.Error, ValueError):
            continue
    return found
