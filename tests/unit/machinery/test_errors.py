"""Texts of errors, as Go programs print them."""

import pytest

from kcm_cli.machinery.errors import TIMED_OUT, aggregated, text_of


@pytest.mark.parametrize(
    "texts, text",
    [
        ((), ""),
        (("no room",), "no room"),
        (("no room", "no room"), "no room"),
        (("no room", "no name", "no room"), "[no room, no name]"),
    ],
)
def test_several_errors_are_listed_in_brackets_each_once(texts: tuple[str, ...], text: str) -> None:
    assert aggregated(iter(texts)) == text


def test_an_error_without_a_text_is_named() -> None:
    assert text_of(ValueError("odd")) == "odd"
    assert text_of(TimeoutError()) == TIMED_OUT
    assert text_of(KeyError()) == "KeyError"
