from typing import Any

import pytest

from kcm_cli.api.batch import SuccessPolicy
from kcm_cli.controllers.job.plan.indexes import parse
from kcm_cli.controllers.job.plan.policies import met
from kcm_cli.machinery import codec


def rule(indexes: str | None = None, count: int | None = None) -> dict[str, Any]:
    made = {"succeededIndexes": indexes, "succeededCount": count}
    return {name: value for name, value in made.items() if value is not None}


@pytest.mark.parametrize(
    ("rules", "succeeded", "expected"),
    [
        pytest.param([rule("0-2")], "0-2", 0, id="all required"),
        pytest.param([rule("0-2")], "0,2,3", None, id="one is missing"),
        pytest.param([rule("0-2,5")], "0-9", 0, id="more than required"),
        pytest.param([rule("0-4", 2)], "1,3,7", 0, id="enough of them"),
        pytest.param([rule("0-4", 2)], "1,7,8", None, id="others do not count"),
        pytest.param([rule(count=3)], "1,7,8", 0, id="any, enough"),
        pytest.param([rule(count=3)], "1,7", None, id="any, too few"),
        pytest.param([rule("0-2"), rule(count=2)], "7,8", 1, id="second rule"),
        pytest.param([rule("0-2"), rule(count=2)], "0-2", 0, id="first rule wins"),
        pytest.param([rule("x")], "0-2", None, id="malformed indexes"),
        pytest.param([rule("20-30")], "0-2", None, id="indexes that the Job does not have"),
        pytest.param([rule(count=0)], "", None, id="nothing succeeded yet"),
        pytest.param([rule("1-20")], "1-9", 0, id="required beyond the completions"),
    ],
)
def test_rules(rules: list[dict[str, Any]], succeeded: str, expected: int | None) -> None:
    policy = codec.decode(codec.encode({"rules": rules}), SuccessPolicy)
    message = None if expected is None else f"Matched rules at index {expected}"
    assert met(policy, 10, parse(succeeded, 10)) == message


def test_no_policy() -> None:
    assert met(None, 10, parse("0-9", 10)) is None
