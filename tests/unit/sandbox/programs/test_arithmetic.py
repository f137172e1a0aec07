"""``$((…))``: what is computed, and what is left to real shells."""

import pytest

from kcm_cli.sandbox.programs.arithmetic import DividedByZero, evaluate
from kcm_cli.sandbox.programs.errors import Malformed, Unsupported


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("1 + 2 * 3", 7),
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("n * (n - 1)", 12),
        ("pass + 1", 5),
        ("from", 4),
        ("True", 4),
        ("0x1F", 31),
        ("n == 4", 1),
        ("n != 4", 0),
        ("n <= 3", 0),
        ("9223372036854775807 + 1", -(1 << 63)),
    ],
)
def test_values(text: str, value: int) -> None:
    assert evaluate(text, lambda name: "4" if name in ("n", "pass", "from", "True") else "") == value


@pytest.mark.parametrize(
    "text", ["n = 1", "n += 1", "n <<= 1", "n++", "!n", "1 < 2 < 3", "1_000", "1e3", "010", "n ? 1 : 2"]
)
def test_what_is_not_supported_is_no_error_of_the_script(text: str) -> None:
    with pytest.raises(Unsupported):
        evaluate(text, lambda name: "4")


@pytest.mark.parametrize("text", ["1 +", "(1", "1 2"])
def test_errors_of_the_script(text: str) -> None:
    with pytest.raises(Malformed):
        evaluate(text, lambda name: "4")


def test_a_division_by_zero() -> None:
    with pytest.raises(DividedByZero):
        evaluate("1 % n", lambda name: "0")
