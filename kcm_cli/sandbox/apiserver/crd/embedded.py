"""Metadata of custom objects and of embedded objects, decoded and validated as that of built-in types.

upstream: apiextensions-apiserver pkg/apiserver/schema/objectmeta
"""

import re
from typing import cast

from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.whole_floats import settle_numbers
from kcm_cli.sandbox.apiserver.crd.findings import invalid
from kcm_cli.sandbox.apiserver.crd.structural import Structural
from kcm_cli.sandbox.apiserver.schema import strict
from kcm_cli.sandbox.apiserver.schema.decode import Irregular, Normalizers, forgets_managers
from kcm_cli.sandbox.apiserver.schema.model import Node
from kcm_cli.sandbox.apiserver.types import FieldError
from kcm_cli.sandbox.apiserver.validation import errors, rules
from kcm_cli.sandbox.apiserver.validation.metadata import path_segment, validate_plain_meta

_UNKNOWN = re.compile(r'unknown field "(.*)"')


class Malformed(Exception):
    """Metadata has a wrong type. The text is the decoder's. ``error``: the validation error of an embedded object."""

    def __init__(self, text: str, error: FieldError | None = None) -> None:
        super().__init__(text)
        self.error = error


class MetaReader:
    """Decodes metadata. ``node``: the type of ObjectMeta."""

    def __init__(self, node: Node, normalizers: Normalizers) -> None:
        self.node = node
        self._normalizers = normalizers

    def read(self, doc: Doc, path: str = "") -> list[str]:
        """Decode an object's metadata, in place. Returns the unknown fields. Raises Malformed."""
        meta = doc.get("metadata")
        if meta is None:
            if not path:
                doc.pop("metadata", None)
            return []
        resets = not path and forgets_managers(meta)
        unknown = self._read(doc, meta, path)
        if resets:
            cast("Doc", doc["metadata"])["managedFields"] = []
        return unknown

    def drop_malformed(self, doc: Doc) -> None:
        """Remove fields of wrong types from an object's metadata, in place, as decoding from storage does."""
        meta = doc.get("metadata")
        if isinstance(meta, dict):
            for key in [
                key for key, value in meta.items() if strict.examine(self.node, settle_numbers({key: value})).fatal
            ]:
                del meta[key]

    def _read(self, doc: Doc, meta: object, path: str) -> list[str]:
        meta = settle_numbers(meta)
        try:
            doc["metadata"] = self._normalizers.run(self.node, meta)
            return []
        except Irregular:
            found = strict.examine(self.node, meta)
        if found.fatal:
            raise Malformed(found.fatal)
        strict.drop_unknown(self.node, meta)
        doc["metadata"] = self._normalizers.run(self.node, meta)
        unknown = [match[1] for text in found.strict if (match := _UNKNOWN.fullmatch(text))]
        return [f"{path}.metadata.{name}" if path else f"metadata.{name}" for name in unknown]

    def coerce(self, schema: Structural, value: object, path: str = "") -> list[str]:
        """Decode the metadata of embedded objects, in place. Returns the unknown fields. Raises Malformed."""
        unknown: list[str] = []
        if schema.embedded and isinstance(value, dict):
            unknown += self._coerce_object(value, path)
        for sub, item, place in schema.parts(value, path):
            if isinstance(item, dict | list):
                unknown += self.coerce(sub, item, place)
        return unknown

    def _coerce_object(self, value: Doc, path: str) -> list[str]:
        for key in ("apiVersion", "kind"):
            if key in value and not isinstance(value[key], str):
                raise Malformed(f"{path}.{key}: {invalid(path, value[key], 'must be a string').message}")
        try:
            return self.read(value, path)
        except Malformed as error:
            found = invalid(f"{path}.metadata", value.get("metadata"), str(error))
            raise Malformed(f"{found.field}: {found.message}", found) from None


def has_embedded(schema: Structural) -> bool:
    """Whether a schema has embedded objects."""
    return schema.embedded or any(map(has_embedded, schema.subschemas()))


def validate_embedded(schema: Structural, value: object, path: str = "") -> list[FieldError]:
    """The errors in types and metadata of embedded objects."""
    found = validate_object(value, path) if schema.embedded and isinstance(value, dict) else []
    for sub, item, place in schema.parts(value, path):
        found += validate_embedded(sub, item, place)
    return found


def validate_object(value: Doc, path: str) -> list[FieldError]:
    """The errors in type and metadata of an object, without those of objects in it."""
    found = [errors.required(f"{path}.{key}") for key in ("apiVersion", "kind") if key not in value]
    for key in ("apiVersion", "kind"):
        text = value.get(key)
        if key in value and not isinstance(text, str):
            found.append(invalid(f"{path}.{key}", text, "must be a string"))
        elif text == "":
            found.append(invalid(f"{path}.{key}", text, "must not be empty"))
    version, kind = value.get("apiVersion"), value.get("kind")
    if isinstance(version, str) and version.count("/") > 1:
        found.append(invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}"))
    if isinstance(kind, str) and kind:
        found += rules.KIND(kind, f"{path}.kind")
    meta = cast("Doc | None", value.get("metadata"))
    if meta is not None:
        meta = {**meta, "name": meta.get("name") or "fakename"}
        found += validate_plain_meta(meta, bool(meta.get("namespace")), path_segment, f"{path}.metadata")
    return found
