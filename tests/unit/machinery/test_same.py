"""Equality of JSON values that distinguishes booleans, integers and fractions."""

import pytest

from kcm_cli.machinery.same import same


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        ({"a": [1, "x", None]}, {"a": [1, "x", None]}, True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": [1]}, {"a": [True]}, False),
        (1, 1.0, False),
        ([-(1 << 63)], [-(2.0**63)], False),
        ([9223372036854776000, 10**19], [2.0**63, 1e19], True),
        ([1e19], [10**19], True),
        (1e19, 10**19 + 10**6, False),
        (1e308, 10**400, False),
        ({"a": None}, {}, False),
        ([1, 2], [1], False),
    ],
)
def test_only_values_with_equal_json_are_equal(left: object, right: object, equal: bool) -> None:
    assert same(left, right) is equal


@pytest.mark.parametrize("depth", [300, 1_000, 100_000])
def test_deep_values_are_compared(depth: int) -> None:
    def nested(core: object) -> object:
        for _ in range(depth):
            core = [{"a": core}]
        return core

    assert same(nested(1), nested(1))
    assert not same(nested(1), nested(1.0))
