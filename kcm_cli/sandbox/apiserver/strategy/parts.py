"""Steps that many strategies share.

upstream: pkg/registry/*/*/strategy.go; apimachinery pkg/apis/meta/v1/helpers.go#ResetObjectMetaForStatus
"""

from collections.abc import Callable

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


def first_generation(doc: Tree) -> None:
    """Set the generation of a new object."""
    doc["metadata"]["generation"] = 1


def bump_generation(new: Tree, old: Tree) -> None:
    """Increment the generation."""
    new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def bump_if_spec_changed(new: Tree, old: Tree) -> None:
    """Increment the generation if the spec changes."""
    if new.get("spec") != old.get("spec"):
        bump_generation(new, old)


def spec_update(new: Tree, old: Tree) -> None:
    """The usual update: keep the status; a change of the spec increments the generation."""
    keep(new, old, "status")
    bump_if_spec_changed(new, old)


def keep_status(new: Tree, old: Tree) -> None:
    """The update of a kind without generations: keep the status."""
    keep(new, old, "status")


def status_update(new: Tree, old: Tree) -> None:
    """The usual update of the status: keep the spec."""
    keep(new, old, "spec")


def keep_metadata(new: Tree, old: Tree) -> None:
    """Keep the metadata in an update of the status."""
    meta, known = new["metadata"], old["metadata"]
    for field in _STATUS_KEEPS:
        keep(meta, known, field)


def strict_status_update(new: Tree, old: Tree) -> None:
    """An update of the status that keeps spec and metadata."""
    keep(new, old, "spec")
    keep_metadata(new, old)


def new_with_status(status: Tree, *, generation: bool) -> Callable[[Tree], None]:
    """Prepares new objects with this status, of fields that are written even if they are empty. ``generation``: the
    kind has generations."""

    def prepare(doc: Tree) -> None:
        doc["status"] = {key: dict(value) if isinstance(value, dict) else value for key, value in status.items()}
        if generation:
            doc["metadata"]["generation"] = 1

    return prepare
