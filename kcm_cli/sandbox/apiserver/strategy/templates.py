"""Steps that kinds with pod templates share.

upstream: pkg/registry/apps/*/strategy.go, pkg/registry/batch/*/strategy.go,
pkg/registry/core/{replicationcontroller,podtemplate}/strategy.go
"""

from kcm_cli.sandbox.apiserver.strategy import parts
from kcm_cli.sandbox.apiserver.strategy.pod_fields import drop_gated_of_template
from kcm_cli.sandbox.apiserver.types import Tree


def drop_gated_fields(new: Tree, old: Tree | None = None) -> None:
    before = None if old is None else old["spec"].get("template")
    drop_gated_of_template(new["spec"].get("template"), before)


def update_with_template(new: Tree, old: Tree) -> None:
    drop_gated_fields(new, old)
    parts.spec_update(new, old)


def new_with_template(doc: Tree) -> None:
    drop_gated_fields(doc)
    doc["status"] = {}
    parts.first_generation(doc)


def new_with_replicas(doc: Tree) -> None:
    drop_gated_fields(doc)
    doc["status"] = {"replicas": 0}
    parts.first_generation(doc)
