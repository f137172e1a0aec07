"""CSIStorageCapacity.

upstream: pkg/apis/storage/validation, pkg/registry/storage/csistoragecapacity/strategy.go
"""

from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.strategy.warnings.nodes import DEPRECATED, of_term
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels, quantities, rules


def _check(doc: Tree, old: Tree | None) -> Errors:
    lenient = labels.has_invalid_value((old or {}).get("nodeTopology"))
    yield from labels.validate_selector(doc.get("nodeTopology"), "nodeTopology", lenient_values=lenient)
    yield from _CAPACITY(doc, "")


_CAPACITY = rules.fields(
    rules.always("storageClassName", rules.SUBDOMAIN), rules.optional("capacity", quantities.non_negative)
)


def _check_change(new: Tree, old: Tree) -> Errors:
    topology = new.get("nodeTopology")
    yield from errors.fixed("nodeTopology", topology, old.get("nodeTopology"), labels.shown(topology))
    yield from errors.fixed("storageClassName", new.get("storageClassName", ""), old.get("storageClassName", ""))


def of_capacity(new: Tree, old: Tree | None) -> list[str]:
    """Warnings about a CSIStorageCapacity."""
    topology = new.get("nodeTopology") or {}
    found = of_term(topology, "nodeTopology")
    for key in sorted(topology.get("matchLabels") or ()):
        if message := DEPRECATED.get(key):
            found.append(f"nodeTopology.matchLabels.{key}: {message}")
    return found


KIND = Kind(
    "storage.k8s.io",
    "csistoragecapacities",
    strategy=Strategy(
        needs_version_on_update=True,
        check=_check,
        check_change=_check_change,
        update_steps=("name", "rules", "metadata", "change"),
        warn=of_capacity,
    ),
)
