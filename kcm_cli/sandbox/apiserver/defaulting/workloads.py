"""Defaults that the kinds which make pods have in common.

upstream: pkg/apis/apps/v1/defaults.go, pkg/apis/batch/v1/defaults.go, pkg/apis/core/v1/defaults.go
"""

from kcm_cli.sandbox.apiserver.types import Tree

ONE_REPLICA = (("replicas", 1),)


def spec_of(doc: Tree) -> Tree:
    doc.setdefault("status", {})
    spec: Tree = doc.setdefault("spec", {})
    return spec


def zero_counters(doc: Tree, counters: tuple[str, ...]) -> None:
    """Counters that are written even when they are zero."""
    status = doc["status"]
    for field in counters:
        status.setdefault(field, 0)
