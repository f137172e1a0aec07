"""Text in messages."""

from kcm_cli.machinery.quoting import bounded, listed


def test_a_long_text_is_cut_with_an_ellipsis() -> None:
    assert [bounded("abcdef", limit) for limit in (5, 6, 7)] == ["abcd…", "abcdef", "abcdef"]


def test_of_many_names_the_first_ones_are_listed_and_the_others_counted() -> None:
    assert [listed(names.split(), 2) for names in ("a", "a b", "a b c", "a b c d")] == [
        "a",
        "a, b",
        "a, b and 1 more",
        "a, b and 2 more",
    ]
