"""Whether a node matches a pod's node selector and required node affinity.

A term that cannot be parsed matches nothing; others may match.

upstream: staging/src/k8s.io/component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go
"""

from collections.abc import Mapping

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


def fits(
    name: str, labels: Mapping[str, str], node_selector: Mapping[str, str] | None, affinity: Affinity | None
) -> bool:
    """Whether the node of this name and labels fits both."""
    if node_selector and any(labels.get(key) != value for key, value in node_selector.items()):
        return False
    selector = required(affinity)
    return selector is None or selects(selector, name, labels)


def selects(selector: NodeSelector, name: str, labels: Mapping[str, str]) -> bool:
    """Whether one of the terms matches; an empty term matches nothing."""
    return any(_term_matches(term, name, labels) for term in selector.node_selector_terms)


def node_named(selector: NodeSelector | None) -> str | None:
    """The one node that a selector names by its field, as the pods of DaemonSets have it; None if it names none."""
    for term in selector.node_selector_terms if selector is not None else ():
        for field in term.match_fields:
            if field.key == NAME_FIELD and field.operator == "In":
                return field.values[0] if len(field.values) == 1 else None
    return None


def _term_matches(term: NodeSelectorTerm, name: str, labels: Mapping[str, str]) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    try:
        expressions = Selector(tuple(_label_requirement(item) for item in term.match_expressions))
        fields = all([_field_matches(item, name) for item in term.match_fields])
    except FormatError:
        return False
    return fields and expressions.matches(labels)


def _label_requirement(item: NodeSelectorRequirement) -> Requirement:
    operator = _OPERATORS.get(item.operator)
    if operator is None:
        raise FormatError(f"{item.operator!r} is no operator of a node selector")
    return requirement(item.key, operator, item.values)


def _field_matches(item: NodeSelectorRequirement, name: str) -> bool:
    if len(item.values) != 1 or item.operator not in ("In", "NotIn"):
        raise FormatError("a field of a node selector takes In or NotIn and one value")
    same = item.key == NAME_FIELD and item.values[0] == name
    return same if item.operator == "In" else not same
