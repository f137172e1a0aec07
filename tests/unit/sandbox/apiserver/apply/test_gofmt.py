"""Values as Go prints them."""

from kcm_cli.sandbox.apiserver.apply.gofmt import go_value


def test_integers_beyond_64_bits_are_floats() -> None:
    assert go_value([1 << 63, -(1 << 63), 10**308 * 2]) == f"[9.223372036854776e+18 {-(1 << 63)} {10**308 * 2}]"


def test_documents() -> None:
    assert go_value({"b": [1, "x", None], "a": {"c": 1e6, "d": True}}) == "map[a:map[c:1e+06 d:true] b:[1 x <nil>]]"
