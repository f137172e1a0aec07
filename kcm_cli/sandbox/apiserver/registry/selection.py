"""Label and field selectors of lists and watches."""

from collections.abc import Callable

import msgspec

from kcm_cli.machinery import codec, fields, labels
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.fields import FieldRequirement, FieldSelector
from kcm_cli.machinery.labels import Selector
from kcm_cli.machinery.remembered import remembered
from kcm_cli.sandbox.apiserver.selectable import Selectable
from kcm_cli.sandbox.apiserver.store import Stored
from kcm_cli.sandbox.apiserver.types import ApiError, Tree

_parse_labels = remembered(1024, longest=1024)(labels.parse)


class _Meta(msgspec.Struct, gc=False):
    labels: dict[str, str] | None = None


class _Labelled(msgspec.Struct, gc=False):
    metadata: _Meta


class Selection:
    """The selectors of a request. name, namespace: required by the field selector, otherwise None.

    ``shown``: makes of a stored object what the selectors see; None if that is what is stored.
    """

    __slots__ = ("_labels", "_fields", "_rules", "_shown", "everything", "name", "namespace")

    def __init__(
        self,
        label_selector: Selector,
        field_selector: FieldSelector,
        rules: Selectable,
        shown: Callable[[Stored], Tree] | None = None,
    ) -> None:
        self._labels = None if label_selector.empty else label_selector
        self._fields = None if field_selector.empty else field_selector
        self._rules, self._shown = rules, shown
        self.name = field_selector.exact("metadata.name")
        self.namespace = field_selector.exact("metadata.namespace")
        self.everything = self._labels is None and self._fields is None

    def narrowed(self, name: str) -> "Selection":
        """The selection, limited to one object."""
        one = FieldSelector((FieldRequirement("metadata.name", name),))
        return Selection(self._labels or labels.EVERYTHING, one, self._rules, self._shown)

    def matches(self, stored: Stored) -> bool:
        """Whether the object is selected."""
        shown = None if self._shown is None or self.everything else self._shown(stored)
        if self._labels is not None:
            if shown is None:
                found = codec.decode(stored.data, _Labelled).metadata.labels
            else:
                found = shown["metadata"].get("labels")
            if not self._labels.matches(found or {}):
                return False
        return self._fields is None or self._fields.matches(self._rules.of(stored, shown))


def parse_selectors(label_text: str, field_text: str) -> tuple[Selector, FieldSelector]:
    """Parse a label and a field selector. Raises ApiError 400."""
    try:
        return _parse_labels(label_text), fields.parse(field_text)
    except FormatError as error:
        raise ApiError(400, "BadRequest", str(error)) from error


def selection(
    rules: Selectable,
    chosen: Selector,
    field_selector: FieldSelector,
    shown: Callable[[Stored], Tree] | None = None,
) -> Selection:
    """The selection of a request, by the fields that its kind declares. Raises ApiError 400."""
    terms = []
    for term in field_selector.requirements:
        if term.field not in rules:
            raise ApiError(400, "BadRequest", rules.refusal.format(label=term.field))
        terms.append(FieldRequirement(rules.aliases.get(term.field, term.field), term.value, term.equal))
    return Selection(chosen, FieldSelector(tuple(terms)), rules, shown)
