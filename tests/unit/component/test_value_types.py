"""Values of flags: parsing, formatting, errors."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.component import value_types as types
from kcm_cli.component.flag_values import CertKey
from kcm_cli.component.value_types import ValueType
from kcm_cli.machinery.go_floats import go_float

READ = [
    pytest.param(types.BOOL, "T", True, "true", id="bool T"),
    pytest.param(types.BOOL, "0", False, "false", id="bool 0"),
    pytest.param(types.INT32, "0x10", 16, "16", id="hexadecimal"),
    pytest.param(types.INT32, "017", 15, "15", id="octal as C writes it"),
    pytest.param(types.INT32, "0o17", 15, "15", id="octal"),
    pytest.param(types.INT32, "-1_000", -1000, "-1000", id="underscores"),
    pytest.param(types.INT32, "+5", 5, "5", id="plus"),
    pytest.param(types.FLOAT32, "0.1", 0.1, "0.1", id="float32"),
    pytest.param(types.FLOAT32, "5000", 5000.0, "5000", id="float32 whole"),
    pytest.param(types.FLOAT, "1e6", 1e6, "1e+06", id="float large"),
    pytest.param(types.FLOAT, "0.00001", 0.00001, "1e-05", id="float small"),
    pytest.param(types.DURATION, "1h30m", 5400.0, "1h30m0s", id="duration"),
    pytest.param(types.DURATION, "300ms", 0.3, "300ms", id="milliseconds"),
    pytest.param(types.DURATION, "8760h", 8760 * 3600.0, "8760h0m0s", id="a year"),
    pytest.param(types.STRINGS, "a,b", ("a", "b"), "[a,b]", id="list"),
    pytest.param(types.STRINGS, "", (), "[]", id="empty list"),
    pytest.param(types.STRINGS, '"a,b",c', ("a,b", "c"), "[a,b,c]", id="quoted item"),
    pytest.param(types.STRINGS, "*,-x,", ("*", "-x", ""), "[*,-x,]", id="empty last item"),
    pytest.param(types.INT32_SLICE, "23,29", (23, 29), "[23,29]", id="int slice"),
    pytest.param(types.IP, "::1", "::1", "::1", id="ip6"),
    pytest.param(types.STRING_MAP, "m,l=a,b", (("m,l", "a,b"),), "[m,l=a,b]", id="one pair with commas"),
    pytest.param(types.STRING_MAP, "a=1,b=2", (("a", "1"), ("b", "2")), "[a=1,b=2]", id="two pairs"),
    pytest.param(
        types.STRING_MAP, '"m,l=a,b","n,l=c"', (("m,l", "a,b"), ("n,l", "c")), "[m,l=a,b,n,l=c]", id="quoted pairs"
    ),
    pytest.param(
        types.MULTIMAP,
        "kube:B=true,kube:A=false",
        (("kube", "B=true"), ("kube", "A=false")),
        "kube:B=true,kube:A=false",
        id="multimap",
    ),
    pytest.param(types.MULTIMAP, "A=true", (("", "A=true"),), ":A=true", id="multimap without component"),
    pytest.param(types.QUANTITY, "2Ki", 2048, "2048", id="quantity"),
    pytest.param(types.LEVEL, "4", 4, "4", id="level"),
    pytest.param(types.VMODULE, "a*=2,b/c=4", (("a*", 2), ("b/c", 4)), "a*=2,b/c=4", id="vmodule"),
    pytest.param(types.NAMED_CERT_KEY, "c,k", (CertKey("c", "k"),), "[c,k]", id="certificate"),
    pytest.param(
        types.NAMED_CERT_KEY, "c,k:a,*.b", (CertKey("c", "k", ("a", "*.b")),), "[c,k:a,*.b]", id="certificate of names"
    ),
    pytest.param(types.VERSION, "raw", "raw", "raw", id="version raw"),
    pytest.param(types.VERSION, "v1.36.2-own.1", "v1.36.2-own.1", "v1.36.2-own.1", id="version set"),
]


@pytest.mark.parametrize(("kind", "text", "value", "shown"), READ)
def test_parses_and_formats(kind: ValueType, text: str, value: object, shown: str) -> None:
    assert kind.parse(text) == value
    assert kind.show(value) == shown


REFUSED = [
    pytest.param(types.BOOL, "yes", id="bool word"),
    pytest.param(types.INT32, "2147483648", id="beyond 32 bits"),
    pytest.param(types.INT32, "1.0", id="fraction"),
    pytest.param(types.INT32, " 1", id="blank"),
    pytest.param(types.INT32, "08", id="no octal digit"),
    pytest.param(types.INT32, "", id="no number"),
    pytest.param(types.FLOAT32, "NaN", id="not a number"),
    pytest.param(types.FLOAT32, "1e39", id="beyond float32"),
    pytest.param(types.FLOAT, "x", id="no float"),
    pytest.param(types.DURATION, "5", id="no unit"),
    pytest.param(types.DURATION, "", id="empty duration"),
    pytest.param(types.STRINGS, 'a"b', id="quote inside"),
    pytest.param(types.IP, "300.0.0.1", id="no address"),
    pytest.param(types.STRING_MAP, "a", id="no pair"),
    pytest.param(types.QUANTITY, "x", id="no quantity"),
    pytest.param(types.LEVEL, "-1", id="negative level"),
    pytest.param(types.VMODULE, "a", id="no level"),
    pytest.param(types.NAMED_CERT_KEY, "c", id="no key"),
    pytest.param(types.NAMED_CERT_KEY, "c,k:", id="no names after the colon"),
    pytest.param(types.VERSION, "1.36", id="no version"),
    pytest.param(types.VERSION, "v1.36.7", id="another version"),
]


@pytest.mark.parametrize(("kind", "text"), REFUSED)
def test_refuses(kind: ValueType, text: str) -> None:
    with pytest.raises(ValueError):
        kind.parse(text)


@pytest.mark.parametrize("kind", [types.FLOAT, types.FLOAT32], ids=["float", "float32"])
@pytest.mark.parametrize("text", ["inf", "-Inf", "+infinity", "NaN", "1e400", "0x1p-2", "0x1.8p3", "1__0", "\u0661"])
def test_numbers_are_finite_and_decimal(kind: ValueType, text: str) -> None:
    """Go's parser takes all of these but the last three."""
    with pytest.raises(ValueError, match="must be a (finite )?number"):
        kind.parse(text)


@pytest.mark.parametrize("kind", [types.FLOAT, types.FLOAT32], ids=["float", "float32"])
def test_numbers_may_have_underscores(kind: ValueType) -> None:
    assert kind.parse("1_0.2_5") == 10.25


@pytest.mark.parametrize("kind", [types.FLOAT, types.FLOAT32], ids=["float", "float32"])
@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 10**400], ids=["inf", "-inf", "nan", "too large"])
def test_numbers_in_a_file_are_finite(kind: ValueType, value: object) -> None:
    """YAML has all of these; JSON, which upstream makes of it, only the last."""
    with pytest.raises(ValueError, match="must be a finite number"):
        kind.from_doc(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_formatted_floats_round_trip(value: float) -> None:
    assert types.FLOAT.parse(go_float(value)) == value


@given(st.integers(-(2**31), 2**31 - 1))
def test_formatted_ints_round_trip(value: int) -> None:
    assert types.INT32.parse(types.INT32.show(value)) == value


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        pytest.param(types.INT32, True, id="bool is no number"),
        pytest.param(types.INT32, 1.5, id="fraction"),
        pytest.param(types.INT32, 2**31, id="beyond 32 bits"),
        pytest.param(types.BOOL, "true", id="text is no bool"),
        pytest.param(types.STRING, 5, id="number is no text"),
        pytest.param(types.STRING, "a\0", id="no path has a NUL"),
        pytest.param(types.DURATION, 5, id="number is no duration"),
        pytest.param(types.STRINGS, "a", id="text is no list"),
        pytest.param(types.STRINGS, ["a", 1], id="mixed list"),
        pytest.param(types.GROUP_RESOURCES, [{"Group": "", "ValueType": "x"}], id="unknown field in a pair"),
    ],
)
def test_a_file_must_have_the_right_type(kind: ValueType, value: object) -> None:
    with pytest.raises(ValueError):
        kind.from_doc(value)


def test_whole_floats_in_a_file_are_ints() -> None:
    assert types.INT32.from_doc(5.0) == 5
    assert math.isclose(types.FLOAT.from_doc(5), 5.0)
