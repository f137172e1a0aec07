import pytest

from kcm_cli.machinery.integers import parse_int64


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0), ("+7", 7), ("-7", -7), ("007", 7), (str(2**63 - 1), 2**63 - 1), (str(-(2**63)), -(2**63)),
        (str(2**63), None), ("9" * 5000, None), ("", None), ("1_0", None), (" 1", None), ("1\n", None), ("١", None),
        ("1.0", None), ("+", None),
    ],
)  # fmt: skip
def test_parses_what_go_parses(text, number):
    assert parse_int64(text) == number
