"""Arguments of the wrong type are named."""

import asyncio
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal, Protocol, TypeVar

import msgspec
import pytest

from kcm_cli.component.arguments import check_fields, checked, checks_arguments, fits

T = TypeVar("T")


class Named(Protocol):
    """Of classes that need not know it."""

    name: str


class Thing(msgspec.Struct):
    """With fields."""

    kind: Literal["a", "b"]
    names: tuple[str, ...] = ()
    span: float | tuple[float, float] = 1

    def __post_init__(self) -> None:
        check_fields(self)


@pytest.mark.parametrize(
    ("value", "annotation", "does"),
    [
        (1, float, True),
        (Fraction(1, 2), float, True),  # numpy's numbers are registered in the same way
        pytest.param(10**400, float, False, id="a whole number that is too large for the clock"),
        (True, float, False),
        (True, int, False),
        (1.5, int, False),
        ("1", float, False),
        (None, str | None, True),
        (3, str | None, False),
        (["a"], tuple[str, ...], True),
        ("a", tuple[str, ...], False),
        (("a", 1), tuple[str, ...], False),
        ((1, 2), tuple[float, float], True),
        ([1, 2], tuple[float, float], False),
        ((1,), tuple[float, float], False),
        ({"a": 1}, Mapping[str, Any], True),
        ({"a": 1}, Sequence[str], False),
        ({"a"}, Iterable[str], True),
        ((one for one in [1]), Iterable[str], True),
        ((one for one in ["a"]), Sequence[str], False),  # it is read more than once
        ((one for one in ["a"]), tuple[str, ...], False),
        (3, Named, True),
        (ValueError, type[Exception], True),
        (int, type[Exception], False),
        (b"a", Sequence[str], False),
        (len, Callable[[], object], True),
        (3, Callable[[], object], False),
        ("a", Literal["a"], True),
        (["a"], Literal["a"], False),
        (ValueError, type[Exception] | tuple[type[Exception], ...], True),
        ((ValueError, 3), type[Exception] | tuple[type[Exception], ...], False),
        (3, "a string", True),
        (3, Any, True),
    ],
)
def test_valid_arguments(value: object, annotation: Any, does: bool) -> None:
    assert fits(value, annotation) is does


def label(**labels: str) -> dict[str, str]:
    return labels


def first(things: Sequence[T]) -> T:
    return things[0]


def test_the_argument_is_named() -> None:
    @checked
    def apply(*things: str, times: int = 1) -> int:
        return len(things) * times

    assert apply("a", "b", times=2) == 4
    with pytest.raises(TypeError, match="^apply: things has to be a string, not 3$"):
        apply("a", 3)  # type: ignore[arg-type]  # what is tested
    with pytest.raises(TypeError, match="^apply: times has to be a whole number, not 'x'$"):
        apply(times="x")  # type: ignore[arg-type]  # what is tested
    with pytest.raises(TypeError, match="^label: labels has to be a string, not 3$"):
        checked(label)(a="x", b=3)  # type: ignore[arg-type]  # what is tested
    assert checked(label)(a="x") == {"a": "x"}
    with pytest.raises(TypeError, match=r"^first: things has to be a list \(of any type each\), not 3$"):
        checked(first)(3)  # type: ignore[arg-type]  # what is tested
    with pytest.raises(TypeError, match="unexpected keyword argument 'nope'"):
        apply(nope=1)  # type: ignore[call-arg]  # what is tested


def test_a_coroutine_function_is_kept() -> None:
    """Mocks and frameworks tell by it what has to be awaited."""

    @checked
    async def pause(seconds: float) -> float:
        return seconds

    assert inspect.iscoroutinefunction(pause)
    assert asyncio.run(pause(1)) == 1
    with pytest.raises(TypeError, match="^pause: seconds has to be a number, not 'x'$"):
        asyncio.run(pause("x"))  # type: ignore[arg-type]  # what is tested


def test_methods_and_fields_are_checked() -> None:
    @checks_arguments
    class Shop:
        def __init__(self, name: str) -> None:
            self.name = name

        def _inside(self, count: int) -> int:
            return count

        def sell(self, things: Iterable[Thing]) -> int:
            return len(list(things))

    shop = Shop("a")
    assert shop.sell([Thing("a")]) == 1 and shop._inside("x") == "x"  # type: ignore[arg-type, comparison-overlap]
    with pytest.raises(TypeError, match="name has to be a string, not None"):
        Shop(None)  # type: ignore[arg-type]  # what is tested
    with pytest.raises(TypeError, match=r"sell: things has to be a list \(of type Thing each\), not \['a'\]"):
        shop.sell(["a"])  # type: ignore[list-item]  # what is tested
    with pytest.raises(TypeError, match="Thing: kind has to be one of a, b, not 'c'"):
        Thing("c")  # type: ignore[arg-type]  # what is tested
    with pytest.raises(TypeError, match=r"Thing: span has to be a number or \(a number, a number\), not \[1, 2\]"):
        Thing("a", span=[1, 2])  # type: ignore[arg-type]  # what is tested
