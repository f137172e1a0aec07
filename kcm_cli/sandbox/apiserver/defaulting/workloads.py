"""Defaults that kinds with pod templates share.

upstream: pkg/apis/apps/v1/defaults.go, pkg/apis/batch/v1/defaults.go, pkg/apis/core/v1/defaults.go
"""

from kcm_cli.sandbox.apiserver.types import Tree

ONE_REPLICA = (("replicas", 1),)


def spec_of(doc: Tree) -> Tree:
    doc.setdefault("status", {})
    spec: Tree = doc.setdefault("spec", {})
    return spec


def zero_counters(doc: Tree, counters: tuple[str, ...]) -> None:
    """Set the counters of the status that upstream writes even if they are zero."""
    status = doc["status"]
    for field in counters:
        status.setdefault(field, 0)
