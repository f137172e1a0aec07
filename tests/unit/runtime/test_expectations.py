"""A key is planned only once its cache shows its writes."""

from kcm_cli.runtime.expectations import TIMEOUT_S, Expectations


def test_a_key_without_expectations_is_satisfied() -> None:
    assert Expectations().satisfied("a", 0.0)


def test_creations_are_counted_down() -> None:
    expectations = Expectations()
    expectations.expect("a", 0.0, creations=2)
    assert not expectations.satisfied("a", 1.0)
    expectations.creation_observed("a")
    assert not expectations.satisfied("a", 1.0)
    expectations.creation_observed("a")
    assert expectations.satisfied("a", 1.0)


def test_a_deletion_observed_repeatedly_is_counted_once() -> None:
    expectations = Expectations()
    expectations.expect("a", 0.0, deletions=("ns/x", "ns/y"))
    expectations.deletion_observed("a", "ns/x")
    expectations.deletion_observed("a", "ns/x")
    assert not expectations.satisfied("a", 1.0)
    expectations.deletion_observed("a", "ns/y")
    assert expectations.satisfied("a", 1.0)


def test_unfulfilled_expectations_expire() -> None:
    expectations = Expectations()
    expectations.expect("a", 10.0, creations=1)
    assert not expectations.satisfied("a", 10.0 + TIMEOUT_S)
    assert expectations.satisfied("a", 10.1 + TIMEOUT_S)


def test_a_deleted_owner_expects_nothing() -> None:
    expectations = Expectations()
    expectations.expect("a", 0.0, creations=1)
    expectations.forget("a")
    assert expectations.satisfied("a", 0.0)


def test_expectations_can_be_raised_during_execution() -> None:
    expectations = Expectations()
    expectations.expect("a", 0.0, creations=1, more=True)
    expectations.expect("a", 1.0, deletions=("u",), more=True)
    expectations.creation_observed("a")
    assert not expectations.satisfied("a", 2.0)
    expectations.deletion_observed("a", "u")
    assert expectations.satisfied("a", 2.0)


def test_unexpected_objects_can_be_observed() -> None:
    expectations = Expectations()
    expectations.creation_observed("a")
    expectations.deletion_observed("a", "u")
    expectations.expect("a", 0.0, creations=1)
    assert not expectations.satisfied("a", 1.0)


def test_another_object_of_the_same_name_expects_nothing():
    """A sync of the first one that was under way when it was deleted may have set what it expects after that."""
    expectations = Expectations()
    expectations.expect("a", 0.0, uid="first", creations=1)
    assert not expectations.satisfied("a", 1.0, "first")
    assert expectations.satisfied("a", 1.0, "second")
    expectations.expect("a", 2.0, uid="second", creations=1)
    assert not expectations.satisfied("a", 3.0, "second")
