"""Tests in several processes: ``pytest -p tests.kit.forks --forks 3``.

They are forked after the collection, which is half a minute of CPU for all tests, and a minute in a new clone. A
process takes some consecutive tests of a module at a time, so that the fixtures of a module are made once or twice, and
all tests of a module whose fixtures take long.
"""

import os
import random
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from itertools import chain, groupby, pairwise
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any

import pytest

_MOST = 12
"""So many tests of a module at a time."""
_WHOLE = ("tests/e2e/", "tests/integration/plan/test_recorded_scenarios.py", "tests/integration/sandbox/test_docs.py")
"""Modules whose tests share what takes long to make, and the folder of those that share processes."""
_CONTEXT = get_context("fork")
Message = tuple[str, Any]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("kcm").addoption("--forks", type=int, default=1, metavar="N", help="run tests in N processes")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    forks = session.config.getoption("forks")
    if forks < 2 or session.config.option.collectonly or session.testsfailed:
        return None
    session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # one for all
    sys.stdout.flush()
    sys.stderr.flush()
    work = _Work(_chunks(session.items))
    running = [_Fork(session, work) for _ in range(forks)]
    try:
        while running:
            for one in wait([each.reports for each in running]):
                fork = next(each for each in running if each.reports is one)
                if fork.ended():
                    running.remove(fork)
            if session.shouldfail or session.shouldstop:
                work.drop()
    except BaseException:
        work.drop()
        for one in running:
            one.interrupt()
        raise
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)
    return True


def _chunks(items: Sequence[pytest.Item]) -> list[list[pytest.Item]]:
    """What a process takes at a time."""
    found = []
    for _, group in groupby(items, lambda item: item.nodeid.partition("::")[0]):
        tests = list(group)
        most = len(tests) if tests[0].nodeid.startswith(_WHOLE) else _MOST
        found += [tests[first : first + most] for first in range(0, len(tests), most)]
    return found


class _Work:
    """The tests that no process has taken."""

    def __init__(self, chunks: Sequence[Sequence[pytest.Item]]) -> None:
        self._chunks = chunks
        self._taken = _CONTEXT.Value("i", 0)
        self._dropped = _CONTEXT.Value("b", 0, lock=False)

    def tests(self) -> Iterator[pytest.Item]:
        """Take tests, as long as there are any."""
        while True:
            with self._taken.get_lock():
                number = self._taken.value
                self._taken.value += 1
            if number >= len(self._chunks):
                return
            for item in self._chunks[number]:
                if self._dropped.value:
                    return
                yield item

    def drop(self) -> None:
        """Leave out all that has not begun."""
        self._dropped.value = 1


class _Fork:
    """A process, as its parent sees it."""

    def __init__(self, session: pytest.Session, work: _Work) -> None:
        self._session = session
        self._item: pytest.Item | None = None
        self._items = {item.nodeid: item for item in session.items}
        self.reports, sending = _CONTEXT.Pipe(duplex=False)
        self._pid = os.fork()
        if not self._pid:
            os._exit(_run(session, work, sending))
        sending.close()

    def ended(self) -> bool:
        """Take one message. Whether it was the last one."""
        hook = self._session.config.hook
        try:
            what, value = self.reports.recv()
        except EOFError:
            self._bury()
            return True
        if what == "started":
            self._item = self._items[value]
        elif what == "report":
            report = hook.pytest_report_from_serializable(config=self._session.config, data=value)
            hook.pytest_runtest_logreport(report=report)
        elif what == "warning":
            message, when, nodeid, location = value
            hook.pytest_warning_recorded.call_historic(
                kwargs={"warning_message": message, "when": when, "nodeid": nodeid, "location": location}
            )
        else:
            self._item = None
            if value:
                raise RuntimeError(f"a process of --forks has ended:\n{value}")
        return False

    def _bury(self) -> None:
        _, status = os.waitpid(self._pid, 0)
        if (item := self._item) is not None:
            code = os.waitstatus_to_exitcode(status)
            text = f"the process that ran it has ended with code {code}"
            report = pytest.TestReport(item.nodeid, item.location, {}, "failed", text, "call")
            self._session.config.hook.pytest_runtest_logreport(report=report)
            self._session.shouldfail = f"{item.nodeid}: {text}"

    def interrupt(self) -> None:
        """Let it end as after Ctrl-C."""
        os.kill(self._pid, signal.SIGINT)
        os.waitpid(self._pid, 0)


class _Sender:
    """Sends what happens in a process to its parent."""

    def __init__(self, config: pytest.Config, sending: Connection) -> None:
        self._config = config
        self._sending = sending

    def send(self, what: str, value: Any) -> None:
        self._sending.send((what, value))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.send("report", self._config.hook.pytest_report_to_serializable(config=self._config, report=report))

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: Any
    ) -> None:
        one = warning_message
        text = UserWarning(f"{one.category.__name__}: {one.message}")
        self.send(
            "warning", (warnings.WarningMessage(text, UserWarning, one.filename, one.lineno), when, nodeid, location)
        )


def _run(session: pytest.Session, work: _Work, sending: Connection) -> int:
    """The life of a process. Returns its exit code."""
    config, sender = session.config, _Sender(session.config, sending)
    plugins = config.pluginmanager
    random.seed()
    try:
        _capture_anew(plugins.getplugin("capturemanager"))
        plugins.unregister(plugins.getplugin("terminalreporter"))
        plugins.register(sender)
        for item, following in pairwise(chain(work.tests(), [None])):
            assert item is not None
            sender.send("started", item.nodeid)
            config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        session._setupstate.teardown_exact(None)  # if it was told to stop
        sender.send("done", "")
    except KeyboardInterrupt:
        session._setupstate.teardown_exact(None)
        return 1
    except BaseException:  # noqa: BLE001 - its parent raises it
        sender.send("done", traceback.format_exc())
        return 1
    return 0


def _capture_anew(manager: Any) -> None:
    """Files of its own for what tests print: those of the parent have one position for all."""
    manager.stop_global_capturing()
    manager.start_global_capturing()
    manager.suspend_global_capture()
