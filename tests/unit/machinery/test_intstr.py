import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.intstr import scaled_value

NINES = "9" * 5000


@pytest.mark.parametrize(
    ("value", "total", "up", "down"),
    [
        (3, 10, 3, 3),
        ("25%", 10, 3, 2),
        ("0%", 10, 0, 0),
        ("100%", 7, 7, 7),
        ("1%", 1, 1, 0),
        ("200%", 3, 6, 6),
    ],
)
def test_scales(value, total, up, down):
    assert scaled_value(value, total, round_up=True) == up
    assert scaled_value(value, total, round_up=False) == down


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("10", "invalid type: string is not a percentage"),
        ("", "invalid type: string is not a percentage"),
        ("x%", 'invalid value "x%": strconv.Atoi: parsing "x": invalid syntax'),
        ("%", 'invalid value "%": strconv.Atoi: parsing "": invalid syntax'),
        (f"{NINES}%", f'invalid value "{NINES}%": strconv.Atoi: parsing "{NINES}": value out of range'),
        ("1.5%", 'invalid value "1.5%": strconv.Atoi: parsing "1.5": invalid syntax'),
    ],
)
def test_error_messages(value, reason):
    with pytest.raises(FormatError) as caught:
        scaled_value(value, 10, round_up=True)
    assert str(caught.value) == f"invalid value for IntOrString: {reason}"


@given(st.integers(0, 100), st.integers(0, 10_000))
def test_rounding_brackets_the_exact_value(percent, total):
    down = scaled_value(f"{percent}%", total, round_up=False)
    up = scaled_value(f"{percent}%", total, round_up=True)
    assert 0 <= down <= percent * total / 100 <= up <= total
    assert up - down == (1 if percent * total % 100 else 0)
