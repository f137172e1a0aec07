"""The flags of the manager equal upstream's, with different help texts."""

from collections.abc import Callable
from itertools import groupby
from typing import Any

import pytest

from kcm_cli.manager.options import arranged, bindings, flag_set
from tests.kit.own import own_flags


def test_flags_equal_upstreams(reference: Callable[[str], Any]) -> None:
    facts = reference("flags.json")
    for fact in (fact for section in facts for fact in section["flags"]):
        flag = flag_set()[fact["name"]]
        assert (flag.kind.word, flag.kind.show(flag.default)) == (fact["type"], fact["default"]), flag.name
        assert flag.shorthand == fact.get("shorthand", "")
        assert flag.hidden is fact.get("hidden", False)
        assert bool(flag.deprecated) is fact.get("deprecated", False)


def test_sections_equal_upstreams_in_order(reference: Callable[[str], Any]) -> None:
    wanted = [
        (section["section"], [flag["name"] for flag in section["flags"] if not flag.get("hidden")])
        for section in reference("flags.json")
    ]
    own = own_flags()
    found = [
        (f"{title} flags", [flag.name for flag in flags])
        for title, flags in groupby(
            (flag for flag in flag_set() if not flag.hidden and flag.name not in own), key=lambda flag: flag.section
        )
    ]
    assert found == wanted, "name a flag that upstream lacks in FLAGS of tests/kit/own.py"


def test_every_visible_flag_has_help() -> None:
    for flag in flag_set():
        assert flag.hidden or (flag.help and flag.help.endswith((".", ")"))), flag.name


@pytest.mark.parametrize(
    ("after", "order"),
    [
        ({}, "a b c d"),
        ({"a": "c"}, "b c a d"),
        ({"a": "c", "b": "a"}, "c a b d"),
        ({"b": "no such name"}, "a c d b"),
        ({"a": "b", "b": "a"}, "c d a b"),
    ],
)
def test_names_follow_others(after: dict[str, str], order: str) -> None:
    assert arranged("abcd", after) == order.split()


def test_every_option_can_be_set() -> None:
    for binding in bindings():
        assert binding.option.name or binding.key, binding.path


def test_there_are_only_upstreams_flags(reference: Callable[[str], Any]) -> None:
    facts = {fact["name"] for section in reference("flags.json") for fact in section["flags"]}
    added = {flag.name for flag in flag_set()} - facts
    assert added == own_flags(), "name a flag that upstream lacks in FLAGS of tests/kit/own.py"


def test_durations_have_their_unit_in_the_name() -> None:
    for binding in bindings():
        if binding.option.kind.word == "duration":
            assert binding.path[-1].endswith("_s"), binding.path
            assert binding.option.unit == "s", binding.path
