"""Cached results, none of which is long."""

from kcm_cli.machinery.remembered import remembered, remembered_all


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
