"""Fields that a field selector may name, and their values.

upstream: pkg/apis/*/v1/conversion.go (labels), pkg/registry/*/strategy.go#SelectableFields (values), v1.36
"""

from collections.abc import Callable, Mapping

import msgspec

from kcm_cli.sandbox.apiserver.store import Stored
from kcm_cli.sandbox.apiserver.trees import at
from kcm_cli.sandbox.apiserver.types import Tree

Values = Callable[[Stored], dict[str, str]]


class Selectable(msgspec.Struct, frozen=True):
    """Fields beyond name and namespace.

    fields: label -> dotted path of its value. aliases: label -> the label in ``values`` that it stands for. refusal:
    the error for other labels. absent: label -> the value for objects without the field. values: returns all values,
    for kinds where paths are not enough. namespace: whether ``metadata.namespace`` may be named.
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

    def of(self, stored: Stored, shown: Tree | None = None) -> dict[str, str]:
        """An object's values by label. ``shown``: its form in the resource, if that differs from the stored one."""
        if self.values is not None:
            return self.values(stored)
        found = {"metadata.name": stored.name, "metadata.namespace": stored.namespace}
        if self.fields:
            doc = stored.doc if shown is None else shown
            for label, path in self.fields.items():
                found[label] = text_at(doc, path) or self.absent.get(label, "")
        return found


PLAIN = Selectable(refusal='"{label}" is not a known field selector: only "metadata.name", "metadata.namespace"')


def text_at(value: object, path: str) -> str:
    """The scalar at a dotted path as text; empty if there is none."""
    value = at(value, path)
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None or isinstance(value, dict | list) else str(value)
