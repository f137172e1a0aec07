"""Structural schemas: fields, defaults, and what is pruned.

Value validations (``values``) and rules (``rules``) use the schema documents (``raw``).

upstream: apiextensions-apiserver pkg/apiserver/schema/{structural,convert}.go
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from kcm_cli.machinery.codec import Doc

NO_DEFAULT = object()
META_FIELDS = frozenset(["apiVersion", "kind", "metadata"])


class Structural(msgspec.Struct, eq=False):
    """A node of a schema.

    additional: the schema of a map's values; True: any values; None: no map. embedded: an object with its own metadata
    (x-kubernetes-embedded-resource). preserve: x-kubernetes-preserve-unknown-fields.
    """

    raw: dict[str, Any]
    type: str = ""
    nullable: bool = False
    default: object = NO_DEFAULT
    preserve: bool = False
    embedded: bool = False
    int_or_string: bool = False
    list_type: str = ""
    list_keys: tuple[str, ...] = ()
    map_type: str = ""
    properties: dict[str, "Structural"] = msgspec.field(default_factory=dict)
    additional: "Structural | bool | None" = None
    items: "Structural | None" = None

    @property
    def values(self) -> "Structural | None":
        """The schema of a map's values, if any."""
        return self.additional if isinstance(self.additional, Structural) else None

    def subschemas(self) -> "Iterator[Structural]":
        """The schemas of properties, items and values."""
        yield from self.properties.values()
        yield from (sub for sub in (self.items, self.values) if sub is not None)

    def parts(self, value: object, path: str) -> "Iterator[tuple[Structural, object, str]]":
        """The fields, entries or items of a value that have a schema: the schema, the value and its path."""
        if isinstance(value, dict):
            for key, item in value.items():
                if key in self.properties:
                    yield self.properties[key], item, f"{path}.{key}" if path else key
                elif self.values is not None:
                    yield self.values, item, f"{path}[{key}]"
        elif isinstance(value, list) and self.items is not None:
            yield from ((self.items, item, f"{path}[{index}]") for index, item in enumerate(value))

    def child(self, name: str) -> "Structural | None":
        """The schema of a field: of a property, or of a map's values."""
        return self.properties.get(name) or self.values


def structural(schema: Doc) -> Structural:
    """The structure of a validated schema (JSONSchemaProps)."""
    raw: dict[str, Any] = schema
    additional = raw.get("additionalProperties")
    items = raw.get("items")
    return Structural(
        raw=raw,
        type=raw.get("type", ""),
        nullable=bool(raw.get("nullable")),
        default=raw["default"] if raw.get("default") is not None else NO_DEFAULT,
        preserve=bool(raw.get("x-kubernetes-preserve-unknown-fields")),
        embedded=bool(raw.get("x-kubernetes-embedded-resource")),
        int_or_string=bool(raw.get("x-kubernetes-int-or-string")),
        list_type=raw.get("x-kubernetes-list-type") or "",
        list_keys=tuple(raw.get("x-kubernetes-list-map-keys") or ()),
        map_type=raw.get("x-kubernetes-map-type") or "",
        properties={name: structural(sub) for name, sub in (raw.get("properties") or {}).items()},
        additional=structural(additional) if isinstance(additional, dict) else (True if additional else None),
        items=structural(items) if isinstance(items, dict) else None,
    )
