"""Warnings about fractional bytes, and about claims.

upstream: pkg/api/{persistentvolume,persistentvolumeclaim,storage}/util.go
"""

from collections.abc import Mapping

from kcm_cli.machinery.quantity import is_whole
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.types import Tree

DEPRECATED: Mapping[str, str] = {
    "photonPersistentDisk": "photonPersistentDisk: deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "gitRepo: deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "scaleIO: deprecated in v1.16, non-functional in v1.22+",
    "flocker": "flocker: deprecated in v1.22, non-functional in v1.25+",
    "storageos": "storageOS: deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "quobyte: deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "glusterfs: deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "cephfs: deprecated in v1.28, non-functional in v1.31+",
    "rbd": "rbd: deprecated in v1.28, non-functional in v1.31+",
}
"""Warnings about sources of volumes."""


def fraction(amounts: Mapping[str, str] | None, name: str, path: str) -> list[str]:
    """A warning about a quantity of bytes that is not an integer."""
    value = (amounts or {}).get(name)
    if value is None or is_whole(value):
        return []
    return [f"{path}[{name}]: fractional byte value {quote(value)} is invalid, must be an integer"]


def of_claim_spec(spec: Tree, path: str) -> list[str]:
    """Warnings about the spec of a claim or of a claim template."""
    resources = spec.get("resources") or {}
    found = fraction(resources.get("requests"), "storage", f"{path}.resources.requests")
    return found + fraction(resources.get("limits"), "storage", f"{path}.resources.limits")
