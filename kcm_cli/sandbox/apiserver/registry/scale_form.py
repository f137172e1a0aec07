"""Conversion between an object and its Scale."""

from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.apply.gofmt import go_value
from kcm_cli.sandbox.apiserver.errors import plain
from kcm_cli.sandbox.apiserver.registry.catalog import ScalePaths, Served
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.trees import at
from kcm_cli.sandbox.apiserver.types import Tree

_GO_TYPES = {str: "string", bool: "bool", float: "float64", list: "[]interface {}", dict: "map[string]interface {}"}
_SHOWN = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
_BUILTIN = ScalePaths("spec.replicas", "status.replicas", "")


def scale_of(kind: Kind, served: Served, doc: Doc) -> Tree:
    """The Scale of an object. Raises ApiError 500 if a custom object's fields have the wrong type."""
    parent: Tree = doc
    where = served.scale or _BUILTIN
    if served.info.custom:
        _check_types(parent, where)
    spec: Tree = {}
    if replicas := at(parent, where.spec):
        spec["replicas"] = replicas
    status: Tree = {"replicas": at(parent, where.status) or 0}
    if selector := _selector(kind, served, parent, where):
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


def _selector(kind: Kind, served: Served, parent: Tree, where: ScalePaths) -> str:
    if served.info.custom:
        return str(at(parent, where.selector) or "") if where.selector else ""
    selector = (parent.get("spec") or {}).get("selector")
    return "" if selector is None else kind.scale_selector(selector)


def nested(doc: Tree, path: str, type_: type, go: str) -> tuple[object, str]:
    """The value at a dotted path (None if there is none), or the error if a type is wrong."""
    value: object = doc
    parts = path.split(".")
    for index, part in enumerate(parts):
        if value is None:
            return None, ""
        if not isinstance(value, dict):
            where = "." + ".".join(parts[: index + 1])
            return None, f"{where} accessor error: {_go(value)}, expected map[string]interface{{}}"
        if part not in value:
            return None, ""
        value = value[part]
    if type(value) is not type_:
        return None, f".{path} accessor error: {_go(value)}, expected {go}"
    return value, ""


def _go(value: object) -> str:
    name = "<nil>" if value is None else _GO_TYPES.get(type(value), "int64")
    return f"{go_value(value)} is of the type {name}"
