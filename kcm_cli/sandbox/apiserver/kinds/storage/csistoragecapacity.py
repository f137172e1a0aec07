"""CSIStorageCapacity.

Source: pkg/apis/storage/validation, pkg/registry/storage/csistoragecapacity/strategy.go.
"""

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.strategy.warnings.nodes import DEPRECATED
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels, metadata, quantities


def validate_capacity(doc: Tree) -> Errors:
    return _capacity(doc, lenient=False)


def _capacity(doc: Tree, *, lenient: bool) -> Errors:
    yield from metadata.validate_meta(doc["metadata"], True, metadata.subdomain)
    yield from labels.validate_selector(doc.get("nodeTopology"), "nodeTopology", lenient_values=lenient)
    name, capacity = doc.get("storageClassName", ""), doc.get("capacity")
    yield from errors.invalid_each("storageClassName", name, names.dns1123_subdomain(name))
    if capacity is not None:
        yield from quantities.non_negative(capacity, "capacity")


def validate_capacity_update(new: Tree, old: Tree) -> Errors:
    yield from _capacity(new, lenient=labels.has_invalid_value(old.get("nodeTopology")))
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])
    topology = new.get("nodeTopology")
    yield from errors.fixed("nodeTopology", topology, old.get("nodeTopology"), labels.shown(topology))
    name = new.get("storageClassName", "")
    yield from errors.fixed("storageClassName", name, old.get("storageClassName", ""))


def of_selector(selector: Tree | None, path: str) -> list[str]:
    """A label selector for nodes."""
    found: list[str] = []
    for index, item in enumerate((selector or {}).get("matchExpressions") or ()):
        key = item.get("key", "")
        if message := DEPRECATED.get(key):
            found.append(f"{path}.matchExpressions[{index}].key: {key} is {message}")
    for key in sorted((selector or {}).get("matchLabels") or ()):
        if message := DEPRECATED.get(key):
            found.append(f"{path}.matchLabels.{key}: {message}")
    return found


def of_capacity(new: Tree, old: Tree | None) -> list[str]:
    """A CSIStorageCapacity."""
    return of_selector(new.get("nodeTopology"), "nodeTopology")


KIND = Kind(
    "storage.k8s.io",
    "csistoragecapacities",
    strategy=Strategy(
        needs_version_on_update=True,
        check_create=validate_capacity,
        check_update=validate_capacity_update,
        warn=of_capacity,
    ),
)
