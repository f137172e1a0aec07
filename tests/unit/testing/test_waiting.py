"""Polling until a condition is true."""

import asyncio
import time
from itertools import count
from typing import Any

import pytest

from kcm_cli.testing import waiting
from kcm_cli.testing.waiting import IGNORED, Steps, wait, wait_async

pytestmark = pytest.mark.real_time


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


def test_a_wait_ends_in_a_test_that_stops_the_clock_of_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 1.7e9)
    with pytest.raises(TimeoutError, match="not true after 0.01 s"):
        wait(lambda: False, 0.01, ())


def test_an_awaitable_condition() -> None:
    answers = count()

    async def ask() -> bool:
        await asyncio.sleep(0)
        return next(answers) > 3

    assert asyncio.run(wait_async(ask, 10, ()))
    with pytest.raises(TimeoutError):
        asyncio.run(wait_async(lambda: asyncio.sleep(0, 0), 0, ()))


@pytest.mark.parametrize("use", [lambda ask: wait_async(ask, 10, ()), lambda ask: Steps(10, 1).holds_async(ask, ())])
def test_a_condition_that_cannot_be_awaited_is_named(use: Any) -> None:
    with pytest.raises(TypeError, match="an asynchronous function is needed here"):
        asyncio.run(use(lambda: True))


def test_a_field_that_is_not_there_yet_counts_as_false() -> None:
    docs = iter([{}, {"status": []}, {"status": [{"ready": True}]}])
    assert wait(lambda: next(docs)["status"][0]["ready"], 10, IGNORED)


def test_steps_until_a_condition_holds() -> None:
    docs = iter([{}, {}, {"status": "yes"}])
    steps = Steps(10, 2)
    while not steps.holds(lambda: next(docs)["status"], IGNORED):
        pass
    assert steps.passed == 4


async def test_steps_are_limited() -> None:
    steps = Steps(2, 1)

    async def ask() -> object:
        return {}["a"]

    with pytest.raises(TimeoutError, match="not true after 2 s of the cluster's time: KeyError") as raised:
        while not await steps.holds_async(ask, IGNORED):
            pass
    assert isinstance(raised.value.__cause__, KeyError) and steps.passed == 2
    with pytest.raises(ZeroDivisionError):
        Steps(2, 1).holds(lambda: 1 / 0, IGNORED)
    with pytest.raises(ValueError, match="a step is"):
        Steps(2, 0)
