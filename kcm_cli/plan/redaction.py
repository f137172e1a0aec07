"""Values of environment variables, which a saved snapshot does not have.

Each is replaced by its number in the order of first sight: equal values stay equal within one file, and nothing that is
saved is computed from a value.
"""

from collections.abc import Iterator
from typing import Any

from kcm_cli.api.well_known import LAST_APPLIED
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_list, nested_map, nested_str

_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")


class Redaction:
    """Replaces the values in the objects of one file."""

    def __init__(self) -> None:
        self._numbers: dict[str, str] = {}

    def clean(self, data: bytes) -> bytes:
        """The object, also in its last-applied annotation, without values."""
        if LAST_APPLIED.encode() not in data and b'"env"' not in data:
            return data
        doc = codec.decode_doc(data)
        self._manifest(nested_map(doc, "metadata", "annotations"))
        self._replace(doc)
        return codec.encode(doc)

    def _manifest(self, annotations: Doc) -> None:
        """The manifest that was applied last, or nothing if it cannot be read."""
        text = annotations.pop(LAST_APPLIED, None)
        if not isinstance(text, str):
            return
        try:
            doc = codec.decode_doc(text)
        except codec.DecodeError:
            return
        nested_map(doc, "metadata", "annotations").pop(LAST_APPLIED, None)
        self._replace(doc)
        annotations[LAST_APPLIED] = codec.encode_sorted(doc).decode() + "\n"

    def _replace(self, doc: object) -> None:
        for container in _containers(doc):
            for one in nested_list(container, "env"):
                if isinstance(one, dict) and one.get("value") not in (None, ""):
                    value = codec.encode_sorted(one["value"]).decode()
                    one["value"] = self._numbers.setdefault(value, f"x-{len(self._numbers) + 1}")


def _containers(doc: object) -> Iterator[Any]:
    """The containers of all pod specs in a document, however deep."""
    rest: list[object] = [doc]
    while rest:
        value = rest.pop()
        if isinstance(value, list):
            rest += value[::-1]
        elif isinstance(value, dict):
            for name, inner in reversed(value.items()):
                if name in _CONTAINERS and isinstance(inner, list):
                    yield from inner
                elif name != "metadata":
                    rest.append(inner)


def as_live(doc: Doc, live: Doc) -> tuple[Doc, bool]:
    """(a manifest with the values that stand in the live object for those of its environment variables, whether there
    are any)."""
    doc = codec.decode_doc(codec.encode(doc))
    known = {
        (nested_str(container, "name"), nested_str(one, "name")): nested_str(one, "value")
        for container in _containers(live)
        for one in nested_list(container, "env")
    }
    found = False
    for container in _containers(doc):
        for one in nested_list(container, "env"):
            stands = known.get((nested_str(container, "name"), nested_str(one, "name")))
            if stands and nested_str(one, "value"):
                one["value"], found = stands, True
    return doc, found
