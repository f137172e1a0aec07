"""What the server knows of the shape of a type: one graph of nodes that decoding, patching and applying walk.

A node is made once and shared; graphs may be cyclic (JSONSchemaProps). Built-in kinds come from ``load``,
custom ones from a structural schema (``crd``).
"""

import msgspec

SCALARS = frozenset(
    {"string", "boolean", "int32", "int64", "number", "bytes", "time", "microtime", "quantity", "intorstr"}
)
"""Node kinds that hold one value. Beside them: struct, map, list, object (a JSON object nobody looks into),
raw (RawExtension: any JSON, embedded as it came), any (any JSON) and or (the item's type where it is an object,
else what ``other`` says).
"""


class Node(msgspec.Struct, eq=False):
    """One type.

    ``fields`` for a struct; ``item`` for the values of a map and the items of a list. ``list_type`` is
    atomic, set or map (then with ``keys``); ``atomic`` marks a map or struct that has one owner as a whole.
    ``go`` is the type's name as error texts print it, ``struct`` the bare name of a struct. ``key_defaults``
    fill absent parts of a key of a map list. ``open``: a struct that keeps fields which it does not name
    (custom resources). ``other``: what an ``or`` may be besides an object: a boolean (nothing else is read), a list of
    such objects, or strings (a list of them; any other scalar is read as nothing by both).
    """

    kind: str
    go: str = ""
    struct: str = ""
    fields: dict[str, "Field"] = msgspec.field(default_factory=dict)
    item: "Node | None" = None
    list_type: str = "atomic"
    keys: tuple[str, ...] = ()
    key_defaults: dict[str, object] = msgspec.field(default_factory=dict)
    atomic: bool = False
    open: bool = False
    other: str = ""

    @property
    def scalar(self) -> bool:
        return self.kind in SCALARS


class Field(msgspec.Struct, eq=False):
    """One field of a struct.

    ``keeps_zero``: an explicit zero is kept apart from absence. ``absent``: what the server writes where the
    client wrote nothing (``NOTHING``: leaves it out); a struct here is filled in turn. ``transient``: an empty
    list or map is kept apart from absence until it is stored. ``strategy``: the words of the strategic merge patch
    strategy (merge, replace, retainKeys), ``merge_key`` its key. ``default`` is what the schema states. For error
    texts: ``go`` is the name of the field's type where it has one of its own, ``embedded`` the embedded structs that
    it is in.
    """

    name: str
    node: Node
    keeps_zero: bool = True
    absent: object = None
    transient: bool = False
    strategy: tuple[str, ...] = ()
    merge_key: str = ""
    default: object = None
    go: str = ""
    embedded: tuple[str, ...] = ()


class Nothing:
    """The type of ``NOTHING``."""


NOTHING = Nothing()
"""A field that is absent when it is not given."""
