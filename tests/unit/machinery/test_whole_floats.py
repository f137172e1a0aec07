"""Whole floats of JSON."""

from kcm_cli.machinery.whole_floats import has_whole_float, settle_numbers


def test_whole_floats_are_integers_as_they_come_back_from_storage():
    doc = {"a": 1.0, "b": [2.0, 2.5, {"c": -3.0}], "d": 1e30, "e": True}
    settled = settle_numbers(doc)
    assert repr(settled) == repr({"a": 1, "b": [2, 2.5, {"c": -3}], "d": 1e30, "e": True})


def test_whole_floats_are_found():
    assert has_whole_float({"a": [1, {"b": 2.0}]}) and has_whole_float(1e30)
    assert not has_whole_float({"a": [1, 2.5, True, None, "2.0"]})
