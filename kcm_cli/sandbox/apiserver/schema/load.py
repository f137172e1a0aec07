"""The built-in types, read from ``data/types.json.gz`` when first needed. Nodes are created kind by kind."""

import threading
from typing import cast

import msgspec

from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.data import read_data
from kcm_cli.sandbox.apiserver.schema import wire
from kcm_cli.sandbox.apiserver.schema.model import NOTHING, Field, Node
from kcm_cli.sandbox.apiserver.schema.published import META, types_of

ZEROS: dict[str, object] = {
    "string": "",
    "boolean": False,
    "int32": 0,
    "int64": 0,
    "number": 0,
    "bytes": "",
    "quantity": "0",
    "intorstr": 0,
}
_GO = {
    "string": "string",
    "boolean": "bool",
    "int32": "int32",
    "int64": "int64",
    "number": "float64",
    "bytes": "[]uint8",
    "time": "v1.Time",
    "microtime": "v1.MicroTime",
    "quantity": "resource.Quantity",
    "intorstr": "intstr.IntOrString",
    "raw": "runtime.RawExtension",
    "object": "v1.FieldsV1",
    "any": "v1.JSON",
}
_KEY_DEFAULTS: dict[str, object] = {"protocol": "TCP"}
"""Defaults of fields that are keys of lists; required ones have their zero."""
_EMPTY_KEYS = frozenset({"LocalObjectReference"})
"""Types of items whose key may be omitted; it is empty then."""
_PREFIXES = (
    ("io.k8s.api.", ""),
    ("io.k8s.apimachinery.pkg.apis.", ""),
    ("io.k8s.apiextensions-apiserver.pkg.apis.", ""),
    ("io.k8s.kube-aggregator.pkg.apis.", ""),
)
DELETE_OPTIONS = META + "DeleteOptions"


_KINDS = "x-kubernetes-group-version-kind"
_NAMES: Doc = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"$ref": f"#/definitions/{META}ObjectMeta"},
}


class _Prop(msgspec.Struct):
    t: str | dict[str, object]
    lt: str = ""
    lk: tuple[str, ...] = ()
    m: int | None = None
    ps: str = ""
    pk: str = ""
    d: object = None


class _Def(msgspec.Struct):
    p: dict[str, object]
    r: tuple[str, ...] = ()
    m: int = 0


class _File(msgspec.Struct):
    kinds: dict[str, str]
    registered: list[str]
    types: dict[str, _Def]


class _GoNames(msgspec.Struct):
    fields: dict[str, dict[str, str]] = {}
    embedded: dict[str, dict[str, str]] = {}


def _go_names() -> _GoNames:
    return msgspec.json.decode(read_data("go_names"), type=_GoNames)


def short_name(definition: str) -> str:
    """``core.v1.Container`` for ``io.k8s.api.core.v1.Container``."""
    for prefix, replacement in _PREFIXES:
        if definition.startswith(prefix):
            return replacement + definition.removeprefix(prefix)
    return definition


class BuiltIn:
    """The types of the built-in kinds. May be shared by the servers of several threads."""

    def __init__(self) -> None:
        self._file = msgspec.json.decode(read_data("types"), type=_File)
        self.registered = frozenset(self._file.registered)
        self.nodes: dict[str, Node] = {}
        """Those that have been made, by definition."""
        self.published: dict[str, Doc] = {}
        """The schemas of declared kinds by definition, for OpenAPI."""
        self._unfinished: dict[str, Node] = {}
        self._lock = threading.Lock()
        self._go_names = _go_names()

    def declare(self, target: tuple[str, str, str], schema: Doc) -> None:
        """Add a kind (group, version, kind) by its schema: see ``registry.core.Kind``. May be repeated."""
        group, version, kind = target
        name = ".".join([*reversed(group.split(".")), version, kind])
        properties = _NAMES | cast("Doc", schema.get("properties", {}))
        whole = {**schema, "type": "object", "properties": properties}
        with self._lock:
            self.published[name] = whole | {_KINDS: [{"group": group, "version": version, "kind": kind}]}
            self._file.kinds[f"{group}/{version}/{kind}"] = name
            self._file.types |= {each: msgspec.convert(type_, _Def) for each, type_ in types_of(name, whole)}

    def definition(self, group: str, version: str, kind: str) -> str | None:
        """The definition's full name, or None for a kind that is not built in."""
        if kind == "DeleteOptions":
            return DELETE_OPTIONS
        return self._file.kinds.get(f"{group}/{version}/{kind}")

    def node(self, definition: str) -> Node:
        """The struct of a definition."""
        node = self.nodes.get(definition)
        if node is None:
            with self._lock:
                node = self._make(definition)
                self.nodes |= self._unfinished
                self._unfinished.clear()
        return node

    def _make(self, definition: str) -> Node:
        """Types may be recursive, so unfinished nodes can be found."""
        node = self.nodes.get(definition) or self._unfinished.get(definition)
        if node is None:
            type_ = self._file.types[definition]
            short = short_name(definition)
            name = short.rpartition(".")[2]
            go = ".".join(short.split(".")[-2:])
            node = self._unfinished[definition] = Node("struct", go=go, struct=name, atomic=bool(type_.m))
            for field_name, raw in type_.p.items():
                node.fields[field_name] = self._field(short, field_name, raw, field_name in type_.r)
        return node

    def _field(self, type_: str, name: str, raw: object, required: bool) -> Field:
        prop = _prop(raw)
        node = self._bare(prop)
        strategy = tuple(prop.ps.split(",")) if prop.ps else ()
        field = Field(name, node, strategy=strategy, merge_key=prop.pk, default=prop.d)
        if node.scalar or node.kind in ("list", "map"):
            if node.scalar:
                null = wire.always_null(type_, name)
                field.keeps_zero = null or wire.keeps_zero(type_, name, required=required)
            else:
                field.keeps_zero = wire.keeps_empty(type_, name)
        field.absent = _absent(type_, name, node, required)
        if node.kind in ("list", "map") and field.absent is None and not field.keeps_zero:
            field.keeps_zero = field.transient = True
        field.go = self._go_names.fields.get(type_, {}).get(name, "")
        embedded = self._go_names.embedded.get(type_, {}).get(name)
        field.embedded = tuple(embedded.split(".")) if embedded else ()
        return field

    def _item(self, raw: object) -> Node:
        return self._bare(_prop(raw))

    def _bare(self, prop: _Prop) -> Node:
        shape = prop.t
        if isinstance(shape, dict):
            return self._container(prop, shape)
        if not shape.startswith("#"):
            return _SCALAR_NODES[shape]
        node = self._make(shape[1:])
        if prop.m is not None and bool(prop.m) != node.atomic:
            return Node("struct", go=node.go, struct=node.struct, fields=node.fields, atomic=bool(prop.m))
        return node

    def _container(self, prop: _Prop, shape: dict[str, object]) -> Node:
        if "or" in shape:
            return Node("or", item=self._item(shape["or"]), other=str(shape["else"]))
        if "map" in shape:
            item = self._item(shape["map"])
            return Node("map", go=f"map[string]{item.go}", item=item, atomic=bool(prop.m))
        item = self._item(shape["list"])
        if prop.lt == "" and "merge" in prop.ps:  # older types state only how they are patched
            prop.lt, prop.lk = ("map", (prop.pk,)) if prop.pk else ("set", ())
        return Node(
            "list",
            go="[]" + item.go,
            item=item,
            list_type=prop.lt or "atomic",
            keys=prop.lk,
            key_defaults=_key_defaults(item, prop.lk),
        )


_SCALAR_NODES = {kind: Node(kind, go=go) for kind, go in _GO.items()}


def _key_defaults(item: Node, keys: tuple[str, ...]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key in keys:
        field = item.fields.get(key)
        if item.struct in _EMPTY_KEYS:
            found[key] = ""
        elif key in _KEY_DEFAULTS:
            found[key] = _KEY_DEFAULTS[key]
        elif field is not None and field.default is not None:
            found[key] = field.default
        elif field is not None and field.absent is not NOTHING and field.absent is not None:
            found[key] = field.absent
    return found


def _prop(raw: object) -> _Prop:
    """A property, which is only its type in the file if there is nothing else."""
    if isinstance(raw, dict) and "t" in raw:
        return msgspec.convert(raw, _Prop)
    return _Prop(t=cast("str | dict[str, object]", raw))


def _absent(type_: str, name: str, node: Node, required: bool) -> object:
    if wire.always_null(type_, name):
        return None
    if node.kind == "struct":
        return {} if wire.always_struct(type_, name, required=required) else NOTHING
    if node.kind in ("list", "map", "raw", "any", "time", "microtime", "object"):
        return None if required and wire.always_zero(type_, name, required=required) else NOTHING
    if wire.always_zero(type_, name, required=required):
        return ZEROS[node.kind]
    return NOTHING
