"""The time for which the machine was suspended."""

import time

import pytest

from kcm_cli.component import clock


def test_suspended_time_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "CLOCK_BOOTTIME", 7, raising=False)
    monkeypatch.setattr(time, "clock_gettime", lambda number: time.monotonic() + number)
    assert clock.suspended_s() == pytest.approx(7.0, abs=1.0)


def test_suspended_time_is_zero_without_a_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(number: int) -> float:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(time, "clock_gettime", refuse)
    assert clock.suspended_s() == 0.0
    monkeypatch.delattr(time, "CLOCK_BOOTTIME", raising=False)
    assert clock.suspended_s() == 0.0
