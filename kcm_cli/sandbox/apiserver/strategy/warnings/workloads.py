"""Warnings that kinds with pod templates share.

upstream: pkg/registry/apps/*/strategy.go, pkg/registry/batch/*/strategy.go, pkg/api/job/warnings.go
"""

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.strategy.warnings import pods
from kcm_cli.sandbox.apiserver.types import Tree


def changed(new: Tree, old: Tree | None) -> bool:
    return old is None or new["metadata"].get("generation") != old["metadata"].get("generation")


def warnings_of_name(new: Tree, old: Tree | None) -> list[str]:
    messages = names.dns1123_label(new["metadata"].get("name", "")) if old is None else ()
    if not messages:
        return []
    text = "this is used in Pod names and hostnames, which can result in surprising behavior"
    return [f"metadata.name: {text}; a DNS label is recommended: [{' '.join(messages)}]"]


def of_replicas(new: Tree, old: Tree | None) -> list[str]:
    """Warnings about a Deployment, ReplicaSet or ReplicationController."""
    if not changed(new, old):
        return []
    return warnings_of_name(new, old) + pods.of_template(new["spec"].get("template"), "spec.template")
