"""Values of environment variables, which a saved snapshot does not have.

Each is replaced by its number in the order of first sight: equal values stay equal within one file, and nothing that is
saved is computed from a value. All fields ``env`` have such values, also those of custom resources: lists of name and
value, and objects of texts.
"""

from collections.abc import Iterator
from typing import Any

from kcm_cli.api.well_known import LAST_APPLIED
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_map, nested_str


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
        for _, holder, name in _values(doc):
            value = codec.encode_sorted(holder[name]).decode()
            holder[name] = self._numbers.setdefault(value, f"x-{len(self._numbers) + 1}")


def _values(doc: object) -> Iterator[tuple[tuple[str, str], Doc, str]]:
    """The values of environment variables in a document, however deep.

    Yields the container and the variable, and where the value is: an object and its key.
    """
    rest: list[tuple[str, object]] = [("", doc)]
    while rest:
        owner, value = rest.pop()
        if isinstance(value, list):
            rest += [(owner, one) for one in reversed(value)]
        elif isinstance(value, dict):
            owner = nested_str(value, "name") or owner
            yield from _of_env(owner, value.get("env"))
            rest += [(owner, inner) for name, inner in reversed(value.items()) if name != "metadata"]


def _of_env(owner: str, env: Any) -> Iterator[tuple[tuple[str, str], Doc, str]]:
    if isinstance(env, dict):
        yield from (((owner, name), env, name) for name, value in env.items() if value and isinstance(value, str))
    elif isinstance(env, list):
        for one in env:
            if isinstance(one, dict) and one.get("value") not in (None, ""):
                yield (owner, nested_str(one, "name")), one, "value"


def as_live(doc: Doc, live: Doc) -> tuple[Doc, bool]:
    """(a manifest with the values that stand in the live object for those of its environment variables, whether there
    are any)."""
    doc = codec.decode_doc(codec.encode(doc))
    known = {variable: holder[name] for variable, holder, name in _values(live)}
    found = False
    for variable, holder, name in _values(doc):
        if variable in known:
            holder[name], found = known[variable], True
    return doc, found
