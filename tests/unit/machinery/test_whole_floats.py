"""Whole floats of JSON."""

import pytest

from kcm_cli.machinery.whole_floats import has_whole_float, settle_numbers, widen


def test_whole_floats_become_integers_as_in_storage():
    doc = {"a": 1.0, "b": [2.0, 2.5, {"c": -3.0}], "d": 1e30, "e": True}
    settled = settle_numbers(doc)
    assert repr(settled) == repr({"a": 1, "b": [2, 2.5, {"c": -3}], "d": 1e30, "e": True})


def test_whole_floats_are_found():
    assert has_whole_float({"a": [1, {"b": 2.0}]}) and has_whole_float(1e30)
    assert not has_whole_float({"a": [1, 2.5, True, None, "2.0"]})


def test_integers_beyond_64_bits_are_floats():
    doc = {"a": 1.0, "b": [1 << 63, {"c": -(1 << 63)}], "e": True}
    assert repr(widen(doc)) == repr({"a": 1.0, "b": [2.0**63, {"c": -(1 << 63)}], "e": True})
    with pytest.raises(OverflowError):
        widen([10**400])
