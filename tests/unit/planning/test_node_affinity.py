import pytest

from kcm_cli.api.core import Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kcm_cli.planning import node_affinity as rules

LABELS = {"zone": "a", "size": "7"}


def label(key, operator, *values):
    return NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key, operator, values),))


def field(key, operator, *values):
    return NodeSelectorTerm(match_fields=(NodeSelectorRequirement(key, operator, values),))


def both(left, right):
    return NodeSelectorTerm(left.match_expressions + right.match_expressions, left.match_fields + right.match_fields)


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ([], False),
        ([NodeSelectorTerm()], False),
        ([label("zone", "In", "a", "b")], True),
        ([label("zone", "In", "b")], False),
        ([label("zone", "NotIn", "b")], True),
        ([label("none", "NotIn", "b")], True),
        ([label("zone", "Exists")], True),
        ([label("none", "DoesNotExist")], True),
        ([label("size", "Gt", "6")], True),
        ([label("size", "Lt", "7")], False),
        ([label("zone", "Gt", "6")], False),
        ([label("zone", "Near", "a")], False),
        ([label("zone", "Near", "a"), label("zone", "Exists")], True),
        ([label("size", "Gt", "x")], False),
        ([both(label("zone", "Exists"), label("none", "Exists"))], False),
        ([field("metadata.name", "In", "n1")], True),
        ([field("metadata.name", "In", "n2")], False),
        ([field("metadata.name", "NotIn", "n2")], True),
        ([field("metadata.name", "In", "n1", "n2")], False),
        ([field("metadata.name", "Exists")], False),
        ([field("metadata.uid", "In", "n1")], False),
        ([both(label("zone", "Exists"), field("metadata.name", "In", "n2"))], False),
    ],
)
def test_terms(terms, expected):
    assert rules.selects(NodeSelector(tuple(terms)), "n1", LABELS) is expected


@pytest.mark.parametrize(
    ("selector", "term", "expected"),
    [
        (None, None, True),
        ({"zone": "a"}, None, True),
        ({"zone": "b"}, None, False),
        ({"zone": "a"}, label("size", "In", "7"), True),
        ({"zone": "a"}, label("size", "In", "8"), False),
        ({"zone": "b"}, label("size", "In", "7"), False),
        (None, label("size", "Gt", "9" * 5000), False),
    ],
)
def test_selector_and_affinity_must_both_match(selector, term, expected):
    affinity = None if term is None else Affinity(NodeAffinity(NodeSelector((term,))))
    assert rules.fits("n1", LABELS, selector, affinity) is expected


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ([field("metadata.name", "In", "n1")], "n1"),
        ([label("zone", "Exists"), field("metadata.name", "In", "n1")], "n1"),
        ([field("metadata.name", "In", "n1", "n2")], None),
        ([field("metadata.name", "NotIn", "n1")], None),
        ([label("zone", "In", "n1")], None),
        ([], None),
    ],
)
def test_the_required_node(terms, expected):
    assert rules.node_named(NodeSelector(tuple(terms))) == expected
    assert rules.node_named(None) is None
