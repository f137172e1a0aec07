"""Conversion between an object and its Scale."""

from kcm_cli.machinery import labels
from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.crd.writes import nested
from kcm_cli.sandbox.apiserver.errors import plain
from kcm_cli.sandbox.apiserver.registry.catalog import ScalePaths, Served
from kcm_cli.sandbox.apiserver.trees import at
from kcm_cli.sandbox.apiserver.types import Tree

_SHOWN = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
_BUILTIN = ScalePaths("spec.replicas", "status.replicas", "")


def scale_of(served: Served, doc: Doc) -> Tree:
    """The Scale of an object. Raises ApiError 500 if a custom object's fields have the wrong type."""
    parent: Tree = doc
    where = served.scale or _BUILTIN
    if served.info.custom:
        _check_types(parent, where)
    spec: Tree = {}
    if replicas := at(parent, where.spec):
        spec["replicas"] = replicas
    status: Tree = {"replicas": at(parent, where.status) or 0}
    if selector := _selector(served, parent, where):
        status["selector"] = selector
    known = parent["metadata"]
    metadata = {field: known[field] for field in _SHOWN if field in known}
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status}


def replicas_path(served: Served) -> tuple[str, ...]:
    """The path of the desired replicas."""
    return tuple((served.scale or _BUILTIN).spec.split("."))


def shows_replicas(served: Served, doc: Tree) -> bool:
    """Whether the object has desired replicas."""
    return at(doc, (served.scale or _BUILTIN).spec) is not None


def set_replicas(served: Served, doc: Tree, replicas: int) -> None:
    """Set an object's replicas. Raises ApiError 500 if a parent on the path is not an object."""
    *parents, last = replicas_path(served)
    for index, part in enumerate(parents):
        doc = doc.setdefault(part, {})
        if not isinstance(doc, dict):
            where = ".".join(("", *parents[: index + 1]))
            raise plain(f"value cannot be set because {where} is not a map[string]interface{{}}")
    doc[last] = replicas


def _check_types(parent: Tree, where: ScalePaths) -> None:
    for path, type_, go in ((where.spec, int, "int64"), (where.status, int, "int64"), (where.selector, str, "string")):
        if path and (problem := nested(parent, path, type_, go)[1]):
            raise plain(problem)


def _selector(served: Served, parent: Tree, where: ScalePaths) -> str:
    if served.info.custom:
        return str(at(parent, where.selector) or "") if where.selector else ""
    selector = (parent.get("spec") or {}).get("selector")
    if selector is None:
        return ""
    if served.info.gvr.plural == "replicationcontrollers":
        return labels.format_set(selector)
    return str(labels.from_label_selector(labels.read_label_selector(selector)))
