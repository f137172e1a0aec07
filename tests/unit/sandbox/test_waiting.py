"""Polling until a condition is true."""

import asyncio
from itertools import count

import pytest

from kcm_cli.sandbox import waiting
from kcm_cli.sandbox.waiting import wait, wait_async


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "POLL_S", 0.0)


def test_the_first_true_value_is_returned() -> None:
    answers = count()
    assert wait(lambda: next(answers) > 3 and "yes", 10, ()) == "yes"


def test_ignored_errors_count_as_false() -> None:
    answers = iter([KeyError("a"), KeyError("b"), None])

    def ask() -> str:
        if error := next(answers):
            raise error
        return "there"

    assert wait(ask, 10, [KeyError]) == "there"


def test_other_errors_are_raised_at_once() -> None:
    with pytest.raises(ZeroDivisionError):
        wait(lambda: 1 // 0, 10, KeyError)


def test_the_last_value_is_in_the_error() -> None:
    with pytest.raises(TimeoutError, match=r"not true after 0 s; the last answer was \[\]"):
        wait(lambda: [], 0, ())


def test_the_last_error_is_the_cause() -> None:
    with pytest.raises(TimeoutError, match="KeyError") as raised:
        wait(lambda: {}["a"], 0, KeyError)
    assert isinstance(raised.value.__cause__, KeyError)


def test_an_awaitable_condition() -> None:
    answers = count()

    async def ask() -> bool:
        await asyncio.sleep(0)
        return next(answers) > 3

    assert asyncio.run(wait_async(ask, 10, ()))
    with pytest.raises(TimeoutError):
        asyncio.run(wait_async(lambda: asyncio.sleep(0, 0), 0, ()))
