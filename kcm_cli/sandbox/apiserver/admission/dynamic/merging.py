"""Merges apply configurations of policies as server-side apply does, without field managers.

upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch/smd.go
"""

from collections.abc import Iterator
from typing import cast

from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.apply import typed
from kcm_cli.sandbox.apiserver.schema import Schemas
from kcm_cli.sandbox.apiserver.schema.bodies import Target
from kcm_cli.sandbox.apiserver.schema.model import Node
from kcm_cli.sandbox.apiserver.types import Tree


class MergeError(Exception):
    """A configuration does not match the type, or sets atomic values."""


class Merger:
    """Merges configurations into objects, by their types."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas

    def merge(self, target: Target, doc: Tree, configuration: Tree) -> Tree:
        """A new document. ``doc`` has kind and apiVersion. Raises MergeError."""
        node = self._schemas.node(target)
        if node is None:
            raise MergeError(f"no type found matching: {target.kind}")
        config: Doc = {**configuration, "apiVersion": doc["apiVersion"], "kind": doc["kind"]}
        problems = typed.problems(node, config)
        if problems:
            listed = problems[0] if len(problems) == 1 else "\n  ".join(["errors:", *problems])
            raise MergeError(f"failed to convert patch object to typed object: {listed}")
        atomics = list(_atomics(node, config, ""))
        if atomics:
            why = f"may not mutate atomic arrays, maps or structs: {', '.join(atomics)}"
            raise MergeError(f"invalid ApplyConfiguration: {why}")
        return cast("Tree", typed.merge(node, doc, config))


def _atomics(node: Node, value: object, path: str) -> Iterator[str]:
    """The paths of atomic lists, maps and structs in a configuration."""
    if node.kind in ("struct", "map", "object") and isinstance(value, dict):
        if node.atomic or node.kind == "object":
            yield path
        for key, item in value.items():
            below = node.fields[key].node if key in node.fields else node.item
            if below is not None:
                yield from _atomics(below, item, f"{path}.{key}")
    elif node.kind == "list" and isinstance(value, list):
        if node.list_type == "atomic":
            yield path
        for index, item in enumerate(value):
            if node.item is not None:
                yield from _atomics(node.item, item, f"{path}[{index}]")
