"""The rules of an aggregated ClusterRole, and how they are applied."""

import pytest

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
