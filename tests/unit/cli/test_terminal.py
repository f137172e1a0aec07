"""A region at the foot of a terminal, with lines above it."""

import asyncio
import io
import logging
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator

import pytest

from kcm_cli.cli.terminal import Region, is_capable
from tests.kit.processes import until
from tests.kit.terminal import Terminal

LINES = 2000


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    with Terminal(rows=20, columns=80) as made:
        yield made


@pytest.fixture
def run(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Region], Awaitable[None]]], None]:
    """Runs a test in a loop, with the standard streams on the terminal, and a region on it."""

    def on_loop(test: Callable[[Region], Awaitable[None]]) -> None:
        async def main() -> None:
            region = Region(sys.stdout)
            region.open()
            try:
                await test(region)
            finally:
                region.close()

        with terminal.stream() as stream, monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", stream)
            patch.setattr(sys, "stderr", stream)
            patch.setenv("TERM", "xterm-256color")  # whatever these tests run in
            asyncio.run(main())

    return on_loop


def test_lines_are_printed_above_the_region(run, terminal: Terminal) -> None:
    async def test(region: Region) -> None:
        region.draw("region 1\nsecond line")
        sys.stderr.write("an error\nhalf a ")
        region.draw("region 2")
        print("line")
        await asyncio.sleep(0)
        until(lambda: terminal.lines[-1] == "region 2")

    run(test)
    until(terminal.is_as_it_was)
    until(lambda: terminal.lines == ["an error", "half a line"], why=lambda: terminal.text)


def test_many_lines_cause_few_redraws(run, terminal: Terminal) -> None:
    log = logging.getLogger("flood")

    def flood(name: str) -> None:
        for number in range(LINES):
            log.warning("%s %d", name, number)

    async def test(region: Region) -> None:
        log.addHandler(handler := logging.StreamHandler(sys.stderr))
        log.propagate = False
        region.draw("foot")
        other = threading.Thread(target=flood, args=("b",))
        other.start()
        flood("a")
        await asyncio.to_thread(other.join)
        log.removeHandler(handler)

    run(test)
    until(lambda: len(terminal.lines) == 2 * LINES)
    for name in "ab":
        own = [line for line in terminal.lines if line.startswith(name)]
        assert own == [f"{name} {number}" for number in range(LINES)]
    assert terminal.raw.count(b"foot") < LINES / 10


def test_a_kept_stream_can_still_be_written(run, terminal: Terminal) -> None:
    async def test(region: Region) -> None:
        kept = sys.stderr
        assert kept.isatty()
        assert kept.writable()
        region.close()
        kept.write("afterwards\n")

    run(test)
    until(lambda: terminal.lines == ["afterwards"])


def test_a_closed_terminal_is_not_an_error(run, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error")

    async def test(region: Region) -> None:
        region.draw("foot")
        monkeypatch.setattr(region.console, "print", gone)
        sys.stdout.write("x\n")
        region.draw("foot 2")
        assert not region.is_open

    run(test)


def test_a_terminal_may_be_closed_before_the_last_line_is_written(run, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error")

    async def test(region: Region) -> None:
        region.draw("foot")
        monkeypatch.setattr(region.console, "out", gone)
        sys.stdout.write("last")
        region.close()
        assert not region.is_open

    run(test)


@pytest.mark.parametrize(
    ("term", "capable"), [("xterm-256color", True), ("linux", True), ("dumb", False), ("unknown", False), ("", False)]
)
def test_terminals_that_can(terminal: Terminal, monkeypatch: pytest.MonkeyPatch, term: str, capable: bool) -> None:
    monkeypatch.setenv("TERM", term)
    with terminal.stream() as stream:
        assert is_capable(stream) is capable
    assert not is_capable(io.StringIO())
