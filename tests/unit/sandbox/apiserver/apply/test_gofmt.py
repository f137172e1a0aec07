"""Values as Go prints them."""

import pytest

from kcm_cli.sandbox.apiserver.apply.gofmt import go_float, go_value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (12.5, "12.5"),
        (999999.0, "999999"),
        (1e6, "1e+06"),
        (-1234567.0, "-1.234567e+06"),
        (123456789.5, "1.234567895e+08"),
        (2.0**63, "9.223372036854776e+18"),
        (1e100, "1e+100"),
        (0.0001, "0.0001"),
        (0.000012345, "1.2345e-05"),
    ],
)
def test_floats(value: float, text: str) -> None:
    assert go_float(value) == text


def test_integers_beyond_64_bits_are_floats() -> None:
    assert go_value([1 << 63, -(1 << 63), 10**308 * 2]) == f"[9.223372036854776e+18 {-(1 << 63)} {10**308 * 2}]"


def test_documents() -> None:
    assert go_value({"b": [1, "x", None], "a": {"c": 1e6, "d": True}}) == "map[a:map[c:1e+06 d:true] b:[1 x <nil>]]"
