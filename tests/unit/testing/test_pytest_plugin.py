"""The plugin itself; its fixtures have tests in tests/integration/sandbox."""

import logging
import runpy
from typing import Any

import pytest

from kcm_cli.testing import pytest_plugin


def test_the_plugin_is_loaded_by_any_pytest_that_may_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is loaded in all projects of an environment. pluggy 1.2 is of 2023, and not all have it."""

    def hookimpl(*, hookwrapper: bool = False, optionalhook: bool = False, tryfirst: bool = False) -> Any:
        return lambda function: function

    monkeypatch.setattr(pytest, "hookimpl", hookimpl)
    runpy.run_path(pytest_plugin.__file__)


def test_a_pytest_that_is_too_old_for_perturbation_says_so(
    monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    monkeypatch.setattr(pytest, "version_tuple", (7, 4, 4))
    monkeypatch.setattr(pytest, "__version__", "7.4.4")
    monkeypatch.setattr(pytestconfig.option, "kcm_perturb", "")
    with pytest.raises(pytest.UsageError, match="--kcm-perturb needs pytest 8 or newer, and this is 7.4.4"):
        pytest_plugin.pytest_configure(pytestconfig)


class _Broken:
    def report(self, namespace: str) -> str:
        raise ValueError(f"nothing of {namespace}")


def test_a_report_that_fails_does_not_end_the_session() -> None:
    assert "no report can be given: nothing of a" in pytest_plugin._told(_Broken(), "a")


def test_loggers_may_be_made_while_pytest_goes_through_them(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = logging.root.manager
    monkeypatch.setattr(manager, "loggerDict", dict(manager.loggerDict))
    pytest_plugin._testing()
    for _, name in zip(manager.loggerDict.values(), ("kcm-test-a", "kcm-test-b"), strict=False):
        made = logging.getLogger(name)
        assert logging.getLogger(name) is made
