"""Formats of strings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.machinery.cel.kubernetes import FUNCTIONS, FormatValue
from kcm_cli.machinery.cel.values import CelError
from kcm_cli.machinery.formats import is_base64, is_date


@pytest.mark.parametrize(
    ("text", "holds"),
    [("", True), ("YQ==", True), ("YQ", False), ("Y=Q=", False), ("YQ==x", False), ("é===", False), ("YWJj\n", False)],
)
def test_base64(text: str, holds: bool) -> None:
    assert is_base64(text) is holds


@pytest.mark.parametrize(
    ("text", "holds"),
    [("2030-01-31", True), ("2030-02-30", False), ("2030-W01-1", False), ("20300131", False), ("٢٠٣٠-01-31", False)],
)
def test_dates(text: str, holds: bool) -> None:
    assert is_date(text) is holds


NAMES = sorted(name for name in FUNCTIONS if name.startswith("format.") and name != "format.named")


@given(st.sampled_from(NAMES), st.text())
def test_any_string_can_be_validated(name: str, text: str) -> None:
    named = FUNCTIONS[name]()
    assert isinstance(named, FormatValue)
    assert isinstance(named.problems(text), list)


numbers = st.integers(0, 2**70).map(str) | st.sampled_from(["1" * 5000, "01", "x", ""])


@given(st.lists(numbers, max_size=5).map(".".join), st.sampled_from(["", "-"]), numbers)
def test_a_version_is_read_or_refused(core: str, sign: str, tail: str) -> None:
    is_version = FUNCTIONS["isSemver"](core + sign + tail)
    try:
        FUNCTIONS["semver"](core + sign + tail)
    except CelError:
        assert is_version is False
    else:
        assert is_version is True
