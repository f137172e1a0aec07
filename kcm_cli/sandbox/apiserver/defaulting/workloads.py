"""Defaults that kinds with pod templates share.

upstream: pkg/apis/apps/v1/defaults.go, pkg/apis/batch/v1/defaults.go, pkg/apis/core/v1/defaults.go
"""

from kcm_cli.sandbox.apiserver.types import Tree


def spec_of(doc: Tree) -> Tree:
    doc.setdefault("status", {})
    spec: Tree = doc.setdefault("spec", {})
    return spec
