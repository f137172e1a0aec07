"""Floats as Go prints them."""

import math
import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kcm_cli.machinery.go_floats import go_float, to_float32


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "-0"),
        (-3.0, "-3"),
        (7, "7"),
        (12.5, "12.5"),
        (0.005, "0.005"),
        (1e-8, "1e-08"),
        (0.000012345, "1.2345e-05"),
        (9.999999999999999e-06, "9.999999999999999e-06"),
        (0.0001, "0.0001"),
        (999999.0, "999999"),
        (999999.5, "999999.5"),
        (1e6, "1e+06"),
        (-1234567.0, "-1.234567e+06"),
        (31104000.0, "3.1104e+07"),
        (1763600000.5, "1.7636000005e+09"),
        (2.0**63, "9.223372036854776e+18"),
        (1e21, "1e+21"),
        (1e100, "1e+100"),
        (float("inf"), "+Inf"),
        (float("-inf"), "-Inf"),
        (float("nan"), "NaN"),
    ],
)
def test_format(value: float, text: str) -> None:
    assert go_float(value) == text


@given(st.floats(allow_nan=False))
def test_the_text_has_the_same_value(value: float) -> None:
    assert float(go_float(value)) == value


@given(st.floats(width=32, allow_nan=False))
def test_float32_has_the_shortest_exact_text(value: float) -> None:
    short = to_float32(value)
    assert struct.pack("<f", short) == struct.pack("<f", value)
    assert to_float32(short) == short


@given(st.floats(-3e38, 3e38))
@example(186.686866571235)
def test_numbers_between_two_of_float32(value: float) -> None:
    assert struct.pack("<f", to_float32(value)) == struct.pack("<f", value)


def test_float32_beyond_its_range() -> None:
    assert [to_float32(value) for value in (1e39, -1e39, 3.4028235e38)] == [math.inf, -math.inf, 3.4028235e38]
