"""The owners that can adopt an orphan."""

from kcm_cli.api.apps import Deployment, DeploymentSpec
from kcm_cli.api.core import Namespace
from kcm_cli.engine.dependents import matching_owners, selector_of
from kcm_cli.machinery.labels import LabelSelector, LabelSelectorRequirement, from_label_selector
from kcm_cli.machinery.meta import ObjectMeta, PartialObject


def owner(name, selector):
    return Deployment(metadata=ObjectMeta(name), spec=DeploymentSpec(selector=selector))


def matching(labels, *owners):
    child = PartialObject(metadata=ObjectMeta("c", labels=labels))
    found = matching_owners(owners, child, lambda one: from_label_selector(one.spec.selector))
    return [one.name for one in found]


SAME = owner("same", LabelSelector(match_labels={"a": "b"}))
OTHER = owner("other", LabelSelector(match_labels={"a": "c"}))
EVERYTHING = owner("everything", LabelSelector())
NOTHING = owner("nothing", None)
BROKEN = owner("broken", LabelSelector(match_expressions=(LabelSelectorRequirement("a", "Equals", ("b",)),)))


def test_owners_whose_selector_matches():
    assert matching({"a": "b"}, OTHER, SAME) == ["same"]


def test_an_invalid_selector_does_not_hide_others():
    assert matching({"a": "b"}, BROKEN, SAME) == ["same"]


def test_an_empty_selector_adopts_nothing():
    assert matching({"a": "b"}, EVERYTHING, NOTHING) == []
    assert matching(None, EVERYTHING, SAME) == []


def test_an_owner_without_a_selector_in_its_spec_adopts_nothing():
    assert selector_of(Namespace()).matches({"a": "b"}) is False
