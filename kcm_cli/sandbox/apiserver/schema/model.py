"""The types of the API, as graphs of nodes that decoding, patches and server-side apply walk.

A node is created once and shared; graphs may be cyclic (JSONSchemaProps). The nodes of built-in kinds are made by
``load``, those of custom kinds from a structural schema (``crd``).
"""

import msgspec

SCALARS = frozenset(
    {"string", "boolean", "int32", "int64", "number", "bytes", "time", "microtime", "quantity", "intorstr"}
)
"""The kinds of nodes with a single value. The others are struct, map, list, object (an opaque JSON object), raw
(RawExtension: any JSON, unchanged), any (any JSON) and or (the item's type if it is an object, else ``other``)."""


class Node(msgspec.Struct, eq=False):
    """One type.

    ``fields`` for a struct; ``item`` for the values of a map and the items of a list. ``list_type`` is
    atomic, set or map (then with ``keys``); ``atomic`` marks a map or struct that is owned as a whole.
    ``go`` is the type's name in errors, ``struct`` the name of a struct without its package. ``key_defaults``: values
    of absent keys of a map list. ``open``: a struct that keeps unknown fields (custom resources). ``other``: what an
    ``or`` accepts besides an object: ``boolean``, ``list`` (of such objects) or ``strings`` (a list of strings). The
    last two read any other value as null.
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

    ``keeps_zero``: an explicit zero differs from absence. ``absent``: the value that the server writes for a missing
    field (``NOTHING``: none; a dict: the type's normalised empty struct). ``transient``: an empty list or map differs
    from absence until the object is stored. ``strategy``: the strategic merge patch strategy (merge, replace,
    retainKeys), ``merge_key`` its key. ``default``: the schema's. For errors: ``go`` is the field's type if its name
    is not the node's, ``embedded`` the embedded structs that the field is in.
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
"""``Field.absent`` of a field that is not written if it is missing."""
