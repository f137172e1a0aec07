"""Defaults of claims and volumes.

Source: pkg/apis/core/v1/defaults.go.
"""

from kcm_cli.sandbox.apiserver.defaulting import resources, volumes
from kcm_cli.sandbox.apiserver.types import Tree


def claim(doc: Tree) -> None:
    """A PersistentVolumeClaim."""
    volumes.claim_spec(doc.setdefault("spec", {}))
    status = doc.setdefault("status", {})
    if not status.get("phase"):
        status["phase"] = "Pending"
    resources.resource_list(status.get("capacity"))
    resources.resource_list(status.get("allocatedResources"))
