"""Steps that many strategies have in common.

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
    """A new object of a kind that counts its generations."""
    doc["metadata"]["generation"] = 1


def bump_generation(new: Tree, old: Tree) -> None:
    """The next generation."""
    new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def bump_if_spec_changed(new: Tree, old: Tree) -> None:
    """The next generation if the spec is another one."""
    if new.get("spec") != old.get("spec"):
        bump_generation(new, old)


def spec_update(new: Tree, old: Tree) -> None:
    """The usual update: the status stays, a new spec is a new generation."""
    keep(new, old, "status")
    bump_if_spec_changed(new, old)


def keep_status(new: Tree, old: Tree) -> None:
    """An update that does not touch the status, of a kind without generations."""
    keep(new, old, "status")


def status_update(new: Tree, old: Tree) -> None:
    """The usual update of the status: the spec stays."""
    keep(new, old, "spec")


def keep_metadata(new: Tree, old: Tree) -> None:
    """The stricter update of the status: metadata stays, too."""
    meta, known = new["metadata"], old["metadata"]
    for field in _STATUS_KEEPS:
        keep(meta, known, field)


def strict_status_update(new: Tree, old: Tree) -> None:
    """Spec and metadata stay."""
    keep(new, old, "spec")
    keep_metadata(new, old)


def new_with_status(status: Tree, *, generation: bool) -> Callable[[Tree], None]:
    """A creation that starts from an empty status: fields that are written even when they are empty."""

    def prepare(doc: Tree) -> None:
        doc["status"] = {key: dict(value) if isinstance(value, dict) else value for key, value in status.items()}
        if generation:
            doc["metadata"]["generation"] = 1

    return prepare
