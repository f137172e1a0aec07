"""Fixtures for tests against a whole control plane in this process (docs/testing-operators.md).

``kcm_sandbox`` is started once per session, ``kcm_namespace`` is a fresh namespace for each test. The controllers are
brought by ``kcm_cli.cli.pytest_plugin``, which is what pytest loads: the sandbox itself knows none.
"""

import importlib
import logging
import sys
from collections.abc import Generator, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kcm_cli.sandbox.hosted import Companion, HostedSandbox, HostOptions

_READ_AT_IMPORT = ("kubernetes.config.kube_config", "kubernetes_asyncio.config.kube_config")
"""Modules that look at KUBECONFIG once and for all."""


@pytest.fixture(scope="session")
def kcm_options() -> "HostOptions":
    """What the sandbox is made of; override it in a conftest.py."""
    options: HostOptions = _hosted().HostOptions()
    return options


@pytest.fixture(scope="session")
def kcm_companion() -> "Companion | None":
    """What runs with the sandbox."""
    return None


@pytest.fixture(scope="session")
def kcm_sandbox(
    kcm_options: "HostOptions", kcm_companion: "Companion | None", pytestconfig: pytest.Config
) -> "Iterator[HostedSandbox]":
    """A fresh cluster for this session. KUBECONFIG names it, so that clients find it by themselves."""
    _show_fields(pytestconfig)
    with _hosted().HostedSandbox(kcm_options, kcm_companion) as sandbox, pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", sandbox.kubeconfig)
        for name in _READ_AT_IMPORT:
            if name in sys.modules:
                patch.setattr(sys.modules[name], "KUBE_CONFIG_DEFAULT_LOCATION", sandbox.kubeconfig)
        yield sandbox


@pytest.fixture
def kcm_namespace(kcm_sandbox: "HostedSandbox") -> Iterator[str]:
    """The name of a fresh namespace; it is deleted after the test."""
    name = _hosted().unique_name("test")
    try:
        kcm_sandbox.make_namespace(name)
        yield name
    finally:
        kcm_sandbox.drop_namespace(name)


@pytest.fixture
def kcm_kubeconfig(kcm_sandbox: "HostedSandbox") -> str:
    """The path of the administrator's kubeconfig."""
    return kcm_sandbox.kubeconfig


class Starter:
    """Starts clusters."""

    def __init__(self, companion: "Companion | None") -> None:
        self.clusters: list[HostedSandbox] = []
        self._companion = companion

    def __call__(self, options: "HostOptions") -> "HostedSandbox":
        """Start one. Raises SandboxError, ManifestError."""
        sandbox: HostedSandbox = _hosted().HostedSandbox(options, self._companion)
        sandbox.start()
        self.clusters.append(sandbox)
        return sandbox


@pytest.fixture
def kcm_start(kcm_companion: "Companion | None", pytestconfig: pytest.Config) -> Iterator[Starter]:
    """Starts clusters of the test's own, as ``kcm_start(HostOptions(nodes=1))``; they end with it."""
    _show_fields(pytestconfig)
    starter = Starter(kcm_companion)
    try:
        yield starter
    finally:
        for sandbox in starter.clusters:
            sandbox.stop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that has failed tells what is in its cluster."""
    report = yield
    if report.failed and call.when != "teardown":
        fixtures: dict[str, Any] = getattr(item, "funcargs", {})
        sandbox: HostedSandbox | None = fixtures.get("kcm_sandbox")
        if sandbox is not None:
            report.sections.append(("kcm sandbox", sandbox.report(fixtures.get("kcm_namespace", "default"))))
        starter: Starter | None = fixtures.get("kcm_start")
        for own in starter.clusters if starter is not None else ():
            report.sections.append((f"kcm sandbox {own.url}", own.report()))
    return report


def _show_fields(config: pytest.Config) -> None:
    """What the controllers log is shown with its fields."""
    from kcm_cli.component.logs import WithFields  # imported here: pytest loads this module in every project

    plugin = config.pluginmanager.get_plugin("logging-plugin")
    for handler in vars(plugin).values() if plugin is not None else ():
        formatter = handler.formatter if isinstance(handler, logging.Handler) else None
        if formatter is not None and not isinstance(formatter, WithFields):
            handler.setFormatter(WithFields(formatter))


def _hosted() -> ModuleType:
    """The sandbox, imported when it is needed: pytest loads this module in every project."""
    try:
        return importlib.import_module("kcm_cli.sandbox.hosted")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("kcm_cli"):
            raise
        why = f"kcm's fixtures need the package {error.name}, which is not installed: pip install kcm-cli"
        return pytest.fail(why, pytrace=False)
