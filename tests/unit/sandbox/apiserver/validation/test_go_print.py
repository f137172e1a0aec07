"""Diffs in errors."""

import re

import pytest

from kcm_cli.sandbox.apiserver.validation.go_print import unified


def numbered(count, **changed):
    return {f"k{number}": changed.get(f"k{number}", "v") for number in range(count)}


def test_a_change_is_shown_with_three_lines_around_it():
    assert unified(numbered(9), numbered(9, k4="w")) == (
        '@@ -3,7 +3,7 @@\n  "k1": "v",\n  "k2": "v",\n  "k3": "v",\n- "k4": "v",\n+ "k4": "w",\n'
        '  "k5": "v",\n  "k6": "v",\n  "k7": "v",\n'
    )


@pytest.mark.parametrize(
    "changed", [{"k0": "w"}, {"k4": "w"}, {"k1999": "w"}, {}], ids=["first", "one", "last", "none"]
)
def test_one_change_of_thousands_of_lines_is_shown_the_same(changed):
    """Except the numbers."""
    small = {name.replace("1999", "8"): value for name, value in changed.items()}
    shown, expected = (
        re.sub(r"k\d+", "k", unified(numbered(count), numbered(count, **words))).partition("\n")[2]
        for count, words in ((2000, changed), (9, small))
    )
    assert shown == expected


def test_what_lies_between_the_first_and_the_last_change_of_thousands_of_lines_is_one():
    shown = unified(numbered(2000), numbered(2000, k10="w", k1500="w")).splitlines()
    assert shown[0] == "@@ -9,1497 +9,1497 @@"
    assert [line[0] for line in shown[1:]] == [*"   ", *"-" * 1491, *"+" * 1491, *"   "]


def test_lines_that_only_one_side_has():
    assert unified(numbered(2000), numbered(1500)).count("\n-") == 501
    assert unified({}, numbered(2000)).count("\n+") == 2002
