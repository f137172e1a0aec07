"""Whether a node matches a pod's node selector and required node affinity.

A term that cannot be parsed matches nothing; others may match.

upstream: staging/src/k8s.io/component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go
"""

from collections.abc import Mapping

import msgspec

from kcm_cli.api.core import Affinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.labels import (
    EXISTS,
    GREATER,
    IN,
    LESS,
    NOT_EXISTS,
    NOT_IN,
    Requirement,
    Selector,
    requirement,
)

NAME_FIELD = "metadata.name"

_OPERATORS = {"In": IN, "NotIn": NOT_IN, "Exists": EXISTS, "DoesNotExist": NOT_EXISTS, "Gt": GREATER, "Lt": LESS}


def required(affinity: Affinity | None) -> NodeSelector | None:
    """The required node affinity."""
    if affinity is None or affinity.node_affinity is None:
        return None
    return affinity.node_affinity.required_during_scheduling_ignored_during_execution


def has_labels(labels: Mapping[str, str], node_selector: Mapping[str, str] | None) -> bool:
    """Whether a node with these labels matches ``nodeSelector``."""
    return not node_selector or all(labels.get(key) == value for key, value in node_selector.items())


def fits(
    name: str, labels: Mapping[str, str], node_selector: Mapping[str, str] | None, affinity: Affinity | None
) -> bool:
    """Whether the node of this name and labels fits both."""
    if not has_labels(labels, node_selector):
        return False
    selector = required(affinity)
    return selector is None or selects(selector, name, labels)


def selects(selector: NodeSelector, name: str, labels: Mapping[str, str]) -> bool:
    """Whether one of the terms matches; an empty term matches nothing."""
    terms = (_parsed(term) for term in selector.node_selector_terms)
    return any(term is not None and term.matches(name, labels) for term in terms)


class Terms:
    """A node selector to match with many nodes: its terms are parsed once."""

    def __init__(self, selector: NodeSelector) -> None:
        parsed = map(_parsed, selector.node_selector_terms)
        self._terms = tuple(term for term in parsed if term is not None)

    def match(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether one of the terms matches."""
        return any(term.matches(name, labels) for term in self._terms)


def node_named(selector: NodeSelector | None) -> str | None:
    """The one node that a selector names by its field, as the pods of DaemonSets have it; None if it names none."""
    for term in selector.node_selector_terms if selector is not None else ():
        for field in term.match_fields:
            if field.key == NAME_FIELD and field.operator == "In":
                return field.values[0] if len(field.values) == 1 else None
    return None


class _Term(msgspec.Struct, frozen=True):
    fields: tuple[NodeSelectorRequirement, ...]
    expressions: Selector

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        return all(_field_matches(item, name) for item in self.fields) and self.expressions.matches(labels)


def _parsed(term: NodeSelectorTerm) -> _Term | None:
    """The term; None if it is empty or cannot be parsed."""
    if not term.match_expressions and not term.match_fields:
        return None
    for item in term.match_fields:
        if len(item.values) != 1 or item.operator not in ("In", "NotIn"):
            return None
    try:
        expressions = Selector(tuple(_label_requirement(item) for item in term.match_expressions))
    except FormatError:
        return None
    return _Term(term.match_fields, expressions)


def _label_requirement(item: NodeSelectorRequirement) -> Requirement:
    operator = _OPERATORS.get(item.operator)
    if operator is None:
        raise FormatError(f"{item.operator!r} is no operator of a node selector")
    return requirement(item.key, operator, item.values)


def _field_matches(item: NodeSelectorRequirement, name: str) -> bool:
    """Whether a field of one value matches, by In or NotIn."""
    same = item.key == NAME_FIELD and item.values[0] == name
    return same if item.operator == "In" else not same
