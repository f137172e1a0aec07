"""Lists of tens of thousands of items in a request are checked for duplicates in one pass."""

from collections.abc import Callable

import pytest

from kcm_cli.sandbox.apiserver.kinds.batch.job_policies import validate_failure_policy
from kcm_cli.sandbox.apiserver.kinds.resource.devices import validate_bindings
from kcm_cli.sandbox.apiserver.types import Errors
from tests.kit.growth import grows_linearly


def exit_codes(codes: list[int]) -> Errors:
    rule = {"action": "Ignore", "onExitCodes": {"operator": "NotIn", "values": codes}}
    return validate_failure_policy({"podFailurePolicy": {"rules": [rule]}}, "p")


def bindings(names: list[int]) -> Errors:
    failures = [f"a.b/f{name}" for name in names]
    return validate_bindings(
        {"bindingConditions": [f"a.b/c{name}" for name in names], "bindingFailureConditions": failures}, "d"
    )


@pytest.mark.parametrize("check", [exit_codes, bindings])
def test_duplicates(check: Callable[[list[int]], Errors]) -> None:
    assert not [error for error in check([0, 1, 2]) if error.type == "FieldValueDuplicate"]
    assert [error.field[-3:] for error in check([0, 1, 0]) if error.type == "FieldValueDuplicate"][:1] == ["[2]"]
    assert grows_linearly(lambda size: lambda: list(check(list(range(size)))), 1000)
