from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.quantity import ZERO, Format, Quantity, from_json, is_whole, make, parse


@pytest.mark.parametrize(
    ("text", "canonical", "format_"),
    [
        ("0", "0", "DecimalSI"),
        ("0m", "0", "DecimalSI"),
        ("0Ki", "0", "BinarySI"),
        ("1", "1", "DecimalSI"),
        ("100m", "100m", "DecimalSI"),
        ("1000m", "1", "DecimalSI"),
        ("1500m", "1500m", "DecimalSI"),
        ("1.5", "1500m", "DecimalSI"),
        ("0.5", "500m", "DecimalSI"),
        (".5", "500m", "DecimalSI"),
        ("1.", "1.", "DecimalSI"),
        ("1.500", "1.500", "DecimalSI"),
        ("1.000", "1", "DecimalSI"),
        ("+5", "+5", "DecimalSI"),
        ("-5", "-5", "DecimalSI"),
        ("-0.5", "-500m", "DecimalSI"),
        ("1000k", "1M", "DecimalSI"),
        ("10000", "10k", "DecimalSI"),
        ("12345", "12345", "DecimalSI"),
        ("100u", "100u", "DecimalSI"),
        ("0.1n", "1n", "DecimalSI"),
        ("1.0000000001", "1000000001n", "DecimalSI"),
        ("1Gi", "1Gi", "BinarySI"),
        ("1024Mi", "1Gi", "BinarySI"),
        ("1.5Gi", "1536Mi", "BinarySI"),
        ("0.5Ki", "512", "BinarySI"),
        ("0.0001Ki", "102400u", "DecimalSI"),
        ("1000Ki", "1000Ki", "BinarySI"),
        ("1.1Ki", "1126400m", "BinarySI"),
        ("8Ei", "9223372036854775807", "BinarySI"),
        ("16Ei", "9223372036854775807", "BinarySI"),
        ("1e3", "1e3", "DecimalExponent"),
        ("1E3", "1E3", "DecimalExponent"),
        ("12e6", "12e6", "DecimalExponent"),
        ("1e4", "10e3", "DecimalExponent"),
        ("1e-3", "1e-3", "DecimalExponent"),
        ("1e0", "1e0", "DecimalExponent"),
        ("1000e0", "1e3", "DecimalExponent"),
        ("1E", "1E", "DecimalSI"),
        ("999E", "999E", "DecimalSI"),
        ("1000E", "1e21", "DecimalSI"),
        ("12000000E", "12e24", "DecimalSI"),
        ("-1000E", "-1e21", "DecimalSI"),
    ],
)
def test_parses_and_prints_canonically(text, canonical, format_):
    quantity = parse(text)
    assert str(quantity) == canonical
    assert quantity.format == format_


@pytest.mark.parametrize("text", ["", "1.2.3", "1 ", " 1", "1Kib", "1i2x", "١", "1_000", "abc", "0x10", "1e3.5"])
def test_refuses_invalid_quantities(text):
    with pytest.raises(FormatError) as caught:
        parse(text)
    assert str(caught.value) == (
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )


@pytest.mark.parametrize("text", ["1ki", "1K", "1mi", "1MM", "--1", "1e", "1e+", "1m5", "1e9999999"])
def test_refuses_an_unknown_suffix(text):
    with pytest.raises(FormatError) as caught:
        parse(text)
    assert str(caught.value) in ("unable to parse quantity's suffix",)


@pytest.mark.parametrize(
    ("unit", "times", "shown"),
    [
        ("1Ei", 1024, "1180591620717411303424"),
        ("1Ei", 3 * 1024, "3541774862152233910272"),
        ("1Ei", 1024 * 10**6, "1180591620717411303424e6"),
        ("1E", 1000, "1e21"),
        ("1e18", 1000, "1e21"),
    ],
)
def test_sums_beyond_the_largest_suffix_keep_their_size(unit, times, shown):
    total = parse(unit) * times
    assert str(total) == shown
    assert parse(shown) == total


def test_rounds_away_from_zero():
    assert parse("1100m").value() == 2
    assert parse("-1100m").value() == -2
    assert parse("1.0001").milli_value() == 1001
    assert parse("1Ki").milli_value() == 1024000
    assert parse("1100m").rounded(0) == parse("2")


def test_the_first_nonzero_summand_gives_the_format():
    assert str(ZERO + parse("1Gi")) == "1Gi"
    assert str(parse("512Mi") + parse("1G")) == "1536870912"
    assert str(parse("1") + parse("1Gi")) == "1073741825"
    assert str(parse("500m") + parse("500m")) == "1"
    assert str(parse("512Mi") + parse("512Mi")) == "1Gi"
    assert str(parse("1Gi") - parse("1Gi")) == "0"
    assert (parse("1Gi") - parse("1Gi")).format is Format.BINARY_SI


def test_equality_is_of_numbers():
    assert parse("1024Mi") == parse("1Gi") == parse("1073741824")
    assert hash(parse("1000m")) == hash(parse("1e0"))
    assert parse("999m") < parse("1") <= parse("1000m")
    assert parse("1") != 1


def test_accepts_json_values():
    assert str(from_json(" 100m ")) == "100m"
    assert str(from_json(2)) == "2"
    assert str(from_json(0.5)) == "500m"
    assert from_json(None) == ZERO
    for wrong in (True, [], {}):
        with pytest.raises(FormatError):
            from_json(wrong)


quantities = st.builds(make, st.integers(-(10**20), 10**20), st.integers(-9, 6), st.sampled_from(Format))
small = st.builds(make, st.integers(-(10**15), 10**15), st.integers(-9, 2), st.sampled_from(Format))


def exact(quantity: Quantity) -> Fraction:
    return quantity.amount * Fraction(10) ** quantity.scale


@given(small)
def test_quantities_round_trip(quantity):
    parsed = parse(str(quantity))
    assert parsed == quantity
    assert str(parse(str(parsed))) == str(parsed)


@given(quantities, quantities)
def test_arithmetic_is_exact(left, right):
    assert exact(left + right) == exact(left) + exact(right)
    assert exact(left - right) == exact(left) - exact(right)
    assert (left < right) == (exact(left) < exact(right))
    assert (left == right) == (exact(left) == exact(right))


@given(quantities)
def test_whole_values_round_away_from_zero(quantity):
    number = exact(quantity)
    assert abs(number) <= abs(quantity.value()) < abs(number) + 1


@given(st.text("0123456789.+-eEinumkKMGTP", max_size=8))
def test_any_text_parses_or_is_refused_cleanly(text):
    try:
        quantity = parse(text)
    except FormatError:
        return
    assert parse(str(quantity)) == quantity


@pytest.mark.parametrize("text", ["Pi", "Ei", "+Pi", "-Ei", ".Pi"])
def test_a_large_binary_suffix_alone_is_no_number(text):
    with pytest.raises(FormatError, match="unable to parse numeric part of quantity"):
        parse(text)
    assert parse(text.replace("Pi", "Ti").replace("Ei", "k")) == ZERO


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        *(
            ("1", True),
            ("1k", True),
            ("1500m", False),
            ("-1500m", False),
            ("2000m", True),
            ("0.1n", False),
            ("8Pi", True),
        ),
        *(("5Ei", True), ("-1Ei", True), ("1536Pi", True), ("12345678901234567890", True), ("1E", True)),
        *(("12345678901234567890e3", True), ("9223372036854775807", True), ("1e300", True), ("1e-300", False)),
    ],
)
def test_large_quantities_are_whole_numbers_too(text, whole):
    assert is_whole(text) is whole
