"""The order of the files: the longest first, so that the workers end together. And Ctrl-C, which ends programs."""

import signal

import pytest

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # as of a job in the background of a script, for all that it starts
    signal.signal(signal.SIGINT, signal.default_int_handler)

LONGEST = ("test_recorded.py", "test_kubectl.py", "test_manager_process.py", "test_plan.py", "test_schemathesis.py")


def _rank(item: pytest.Item) -> int:
    return LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_rank)
