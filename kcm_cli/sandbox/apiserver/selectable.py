"""Which fields a field selector may name, and their values.

upstream: pkg/apis/*/v1/conversion.go (labels), pkg/registry/*/strategy.go#SelectableFields (values), v1.36
"""

from collections.abc import Callable, Mapping

import msgspec

from kcm_cli.sandbox.apiserver.store import Stored

Values = Callable[[Stored], dict[str, str]]


class Selectable(msgspec.Struct, frozen=True):
    """Fields beyond name and namespace.

    fields: label -> where its value is; aliases: label -> the label of ``values`` that it stands for; refusal: the
    text for others; absent: label -> its value where the object has none; values: how to get all values, for kinds
    where paths do not say it; namespace: whether ``metadata.namespace`` may be named.
    """

    fields: Mapping[str, str] = msgspec.field(default_factory=dict)
    aliases: Mapping[str, str] = msgspec.field(default_factory=dict)
    refusal: str = "field label not supported: {label}"
    absent: Mapping[str, str] = msgspec.field(default_factory=dict)
    values: Values | None = None
    namespace: bool = True

    def __contains__(self, label: str) -> bool:
        names = ("metadata.name", "metadata.namespace") if self.namespace else ("metadata.name",)
        return label in names or label in self.fields or label in self.aliases

    def of(self, stored: Stored) -> dict[str, str]:
        """The values of an object, by label."""
        if self.values is not None:
            return self.values(stored)
        found = {"metadata.name": stored.name, "metadata.namespace": stored.namespace}
        if self.fields:
            doc = stored.doc
            for label, path in self.fields.items():
                found[label] = text_at(doc, path) or self.absent.get(label, "")
        return found


PLAIN = Selectable(refusal='"{label}" is not a known field selector: only "metadata.name", "metadata.namespace"')


def text_at(value: object, path: str) -> str:
    """The text at a dotted path; empty where there is none."""
    for part in path.split(".") if path else ():
        if not isinstance(value, dict):
            return ""
        value = value.get(part)
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None or isinstance(value, dict | list) else str(value)
