"""The plugin itself; its fixtures have tests in tests/integration/sandbox."""

import logging

import pytest

from kcm_cli.testing import pytest_plugin


def test_loggers_may_be_made_while_pytest_goes_through_them(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = logging.root.manager
    monkeypatch.setattr(manager, "loggerDict", dict(manager.loggerDict))
    pytest_plugin._testing()
    for _, name in zip(manager.loggerDict.values(), ("kcm-test-a", "kcm-test-b"), strict=False):
        made = logging.getLogger(name)
        assert logging.getLogger(name) is made
