import pytest

from kcm_cli.machinery.meta import number_of


@pytest.mark.parametrize(
    ("version", "number"),
    [("7", 7), ("18446744073709551616", 2**64), ("", 0), ("abc", 0), ("-7", 0), ("1.5", 0), ("9" * 5000, 0)],
)
def test_versions_of_other_servers_are_not_numeric(version: str, number: int) -> None:
    assert number_of(version) == number
