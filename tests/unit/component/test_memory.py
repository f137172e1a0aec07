"""Memory that is given back to the system."""

import ctypes

import pytest

from kcm_cli.component.memory import Allocator


def test_the_librarys_functions_are_called(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[tuple[str, tuple[int, ...]]] = []

    class Library:
        def mallopt(self, *args: int) -> None:
            called.append(("mallopt", args))

        def malloc_trim(self, *args: int) -> None:
            called.append(("malloc_trim", args))

    monkeypatch.setattr(ctypes, "CDLL", lambda name: Library())
    allocator = Allocator()
    allocator.keep_large_blocks_apart()
    allocator.give_back()
    assert called == [("mallopt", (-3, 131072)), ("malloc_trim", (0,))]


def test_another_library_has_none_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    allocator = Allocator()
    allocator.keep_large_blocks_apart()
    allocator.give_back()


@pytest.mark.parametrize("error", [TypeError, OSError])
def test_without_a_library_nothing_is_done(monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    """Windows has no library of the process itself: ctypes refuses None as a name."""

    def none(name: object) -> object:
        raise error

    monkeypatch.setattr(ctypes, "CDLL", none)
    allocator = Allocator()
    allocator.keep_large_blocks_apart()
    allocator.give_back()


def test_this_library_accepts_it() -> None:
    Allocator().give_back()
