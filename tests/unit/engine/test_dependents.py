"""The owners that can adopt an orphan."""

from kcm_cli.api.apps import Deployment, DeploymentSpec
from kcm_cli.api.core import Namespace
from kcm_cli.engine.dependents import Dependents, selector_of
from kcm_cli.machinery.labels import LabelSelector, LabelSelectorRequirement
from kcm_cli.machinery.meta import ObjectMeta, OwnerReference, PartialObject
from kcm_cli.runtime.expectations import TIMEOUT_S, Expectations
from kcm_cli.runtime.store import Store


def owner(name, selector):
    return Deployment(metadata=ObjectMeta(name, namespace="n"), spec=DeploymentSpec(selector=selector))


def matching(labels, *owners):
    store, queued = Store(), []
    for one in owners:
        store.put(one)
    dependents = Dependents("Deployment", store, queued.append, selector=selector_of)
    dependents._added(PartialObject(metadata=ObjectMeta("c", namespace="n", labels=labels)))
    return [key.removeprefix("n/") for key in queued]


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


def child(version, controller="same", **labels):
    refs = (OwnerReference("apps/v1", "Deployment", controller, controller, controller=True),)
    meta = ObjectMeta("c", "n", "c", version, labels=labels or None, owner_references=refs)
    return PartialObject(metadata=meta)


def test_an_update_that_does_not_matter_queues_its_owner_only_with_new_labels_another_owner_or_at_a_resync():
    store, queued = Store(), []
    for name in ("same", "other"):
        store.put(Deployment(metadata=ObjectMeta(name, "n", name), spec=DeploymentSpec()))
    dependents = Dependents("Deployment", store, queued.append, selector=selector_of, matters=lambda old, new: False)
    old = child("1")
    for new, keys in (
        (child("2"), []),
        (child("2", a="b"), ["n/same"]),
        (child("2", "other"), ["n/same", "n/other"]),
        (old, ["n/same"]),
    ):
        dependents._updated(old, new)
        assert queued == keys
        queued.clear()


def test_an_overdue_owner_is_queued_by_any_update():
    """What it waits for was missed, and nothing else would wake it."""
    store, queued = Store(), []
    store.put(Deployment(metadata=ObjectMeta("same", "n", "same"), spec=DeploymentSpec()))
    expectations = Expectations()
    expectations.expect("n/same", 0.0, uid="same", creations=1)
    now = 0.0
    dependents = Dependents(
        "Deployment",
        store,
        queued.append,
        selector=selector_of,
        matters=lambda old, new: False,
        overdue=lambda key: expectations.expired(key, now),
    )
    dependents._updated(child("1"), child("2"))
    assert queued == []
    now = TIMEOUT_S + 1
    dependents._updated(child("2"), child("3"))
    assert queued == ["n/same"]
    expectations.creation_observed("n/same")
    dependents._updated(child("3"), child("4"))
    assert queued == ["n/same"]
