"""Steps that many strategies share.

upstream: pkg/registry/*/*/strategy.go; apimachinery pkg/apis/meta/v1/helpers.go#ResetObjectMetaForStatus
"""

from kcm_cli.sandbox.apiserver.trees import keep
from kcm_cli.sandbox.apiserver.types import Tree

_STATUS_KEEPS = (
    "deletionTimestamp",
    "generation",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
)


def bump_generation(new: Tree, old: Tree) -> None:
    """Increment the generation."""
    new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def bump_if_spec_changed(new: Tree, old: Tree) -> None:
    """Increment the generation if the spec changes."""
    if new.get("spec") != old.get("spec"):
        bump_generation(new, old)


def keep_metadata(new: Tree, old: Tree) -> None:
    """Keep the metadata in an update of the status."""
    meta, known = new["metadata"], old["metadata"]
    for field in _STATUS_KEEPS:
        keep(meta, known, field)
