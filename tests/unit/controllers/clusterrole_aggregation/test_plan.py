"""The rules of an aggregated ClusterRole, and how they are applied."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.api.rbac import CLUSTER_ROLES
from kcm_cli.controllers.clusterrole_aggregation import plan
from kcm_cli.machinery import codec

GET = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
LIST = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}


def role(name, *rules, labels=None, **aggregation):
    doc = {"metadata": {"name": name, "labels": labels or {}}, "rules": list(rules)}
    return CLUSTER_ROLES.decode(codec.encode({**doc, **aggregation}))


def aggregated(*selectors, rules=()):
    chosen = [{"matchLabels": labels} for labels in selectors]
    return role("all", *rules, aggregationRule={"clusterRoleSelectors": chosen})


@pytest.mark.parametrize(
    ("selectors", "expected"),
    [((), []), (({"a": "1"},), [GET]), (({"b": "1"}, {"a": "1"}), [LIST, GET]), (({"a": "1"}, {"a": "1"}), [GET])],
    ids=["no selector", "one", "in the order of the selectors", "each rule once"],
)
def test_rules_of_the_selected_roles(selectors, expected):
    roles = [role("x", GET, labels={"a": "1"}), role("y", LIST, GET, labels={"b": "1"}), role("z", LIST)]
    assert plan.rules_of(aggregated(*selectors), roles) == expected


def test_empty_rules_are_not_applied_so_that_other_managers_keep_theirs():
    assert "rules" not in plan.applied(aggregated(), [])
    assert plan.applied(aggregated(), [GET])["rules"] == [GET]


# -- aggregated roles among the parts

verbs = st.lists(st.sampled_from(["get", "list", "watch"]), min_size=1, max_size=3)
roles_and_parts = st.lists(st.tuples(verbs, st.lists(st.integers(0, 5), max_size=3)), min_size=2, max_size=6)


def graph(wanted, *, cycles):
    """Roles by number; one with parts is aggregated, with the label of each as a selector. ``cycles``: whether a part
    may have an earlier number."""
    made = []
    for number, (own, parts) in enumerate(wanted):
        chosen = [{"matchLabels": {f"r{part}": "yes"}} for part in parts if part > number or cycles]
        aggregation = {"aggregationRule": {"clusterRoleSelectors": chosen}} if chosen else {}
        rules = [] if chosen else [{**GET, "verbs": [verb]} for verb in own]
        made.append(role(f"n{number}", *rules, labels={f"r{number}": "yes"}, **aggregation))
    return made


def written(roles, **options):
    """The roles after the controller has written all aggregated ones once."""
    return [
        msgspec.structs.replace(one, rules=tuple(plan.rules_of(one, roles, **options)))
        if one.aggregation_rule is not None
        else one
        for one in roles
    ]


@given(roles_and_parts)
def test_without_cycles_they_are_as_if_rules_were_taken_from_the_parts_as_they_are(wanted):
    """Which needs a sync after that of each part, as upstream does it."""
    roles = graph(wanted, cycles=False)
    at_rest = roles
    for _ in roles:
        at_rest = written(at_rest, most=0)
    assert written(roles) == at_rest
    assert written(at_rest) == at_rest


@given(roles_and_parts, st.integers(0, 5))
def test_no_rule_is_kept_of_a_role_that_is_gone(wanted, gone):
    """Wherever it went while the role was there."""
    before = written(graph(wanted, cycles=True))
    left = [one for one in before if one.name != f"n{gone}"]
    never = [one for one in graph(wanted, cycles=True) if one.name != f"n{gone}"]
    assert written(left) == written(never)


def test_a_part_whose_selectors_are_invalid_keeps_its_rules():
    odd = {"clusterRoleSelectors": [{"matchExpressions": [{"key": "a", "operator": "Odd"}]}]}
    part = role("part", GET, labels={"a": "1"}, aggregationRule=odd)
    assert plan.rules_of(aggregated({"a": "1"}), [part]) == [GET]


def test_a_long_chain_of_aggregated_roles_costs_no_more_than_its_beginning():
    chain = [
        role(f"n{number}", LIST, labels={f"r{number}": "yes"}, aggregationRule=selecting(number + 1))
        for number in range(2000)
    ]
    assert plan.rules_of(chain[0], chain) == [LIST]
    assert plan.rules_of(chain[0], chain[: plan.MOST]) == []


def selecting(number):
    return {"clusterRoleSelectors": [{"matchLabels": {f"r{number}": "yes"}}]}
