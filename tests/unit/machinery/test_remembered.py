"""Cached results, none of which is long."""

import pytest

from kcm_cli.machinery.remembered import remembered, remembered_all, remembered_documents


def test_only_results_of_short_texts_are_cached() -> None:
    asked: list[str] = []

    @remembered(2, longest=3)
    def length(text: str) -> int:
        asked.append(text)
        return len(text)

    assert [length(text) for text in ("abc", "abc", "abcd", "abcd")] == [3, 3, 4, 4]
    assert asked == ["abc", "abcd", "abcd"]


def test_results_are_cached_only_if_all_arguments_are_short() -> None:
    asked: list[tuple[object, ...]] = []

    @remembered_all(2, longest=4)
    def size(key: str, values: tuple[str, ...], other: float | None) -> int:
        asked.append((key, values, other))
        return len(key) + len(values)

    for values in (("a",), ("a", "b")):
        assert size("ab", values, None) == size("ab", values, None) == 2 + len(values)
    assert asked == [("ab", ("a",), None), ("ab", ("a", "b"), None), ("ab", ("a", "b"), None)]


def test_results_of_documents_are_cached_up_to_a_total_size() -> None:
    asked: list[bytes] = []

    @remembered_documents(3000)
    def length(document: bytes) -> int:
        asked.append(document)
        return len(document)

    small, other, large = b"s", b"o" * 500, b"l" * 9000
    assert [length(one) for one in (small, other, small, other)] == [1, 500, 1, 500]
    assert asked == [small, other]
    assert [length(one) for one in (large, large, small)] == [9000, 9000, 1]
    assert asked == [small, other, large, small], "the one used last stays, however large it is"


def test_an_error_is_not_cached() -> None:
    asked: list[bytes] = []

    @remembered_documents(3000)
    def refuse(document: bytes) -> int:
        asked.append(document)
        raise ValueError

    for _ in range(2):
        with pytest.raises(ValueError):
            refuse(b"x")
    assert asked == [b"x", b"x"]
