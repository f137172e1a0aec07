"""Fixtures for tests against a complete control plane in this process (docs/testing-operators.md).

pytest loads this module in every project that has kcm installed, so it imports other modules only when a fixture is
used.
"""

import importlib
import itertools
import logging
import os
import secrets
from collections.abc import Generator, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kcm_cli.plan.testing import TwinOf
    from kcm_cli.testing import HostOptions, OperatorTrial, Sandbox, Starter


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("kcm", "Kubernetes operators")
    group.addoption(
        "--kcm-perturb",
        nargs="?",
        const="",
        metavar="KINDS",
        help="repeat tests that use the fixture kcm_operator, with one injected fault each time: "
        "crash,unsent,lost,conflict,lag,stale,older,terminating,missed (the default), refused",
    )
    group.addoption("--kcm-perturb-max", type=int, default=100, metavar="N", help="largest number of runs per test")
    group.addoption("--kcm-replay", action="append", default=[], metavar="ID", help="inject only this fault")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(args: list[str]) -> None:
    """Handle ``pytest --kcm-perturb tests/``: a path is not a list of kinds."""
    for index, (option, value) in enumerate(itertools.pairwise(args)):
        if option == "--kcm-perturb" and os.path.exists(value.partition("::")[0]):
            args[index] = "--kcm-perturb="


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("kcm_perturb") is not None or config.getoption("kcm_replay"):
        if pytest.version_tuple < (8,):
            raise pytest.UsageError(f"--kcm-perturb needs pytest 8 or newer, and this is {pytest.__version__}")
        _testing()
        # imported here: pytest loads this module in every project
        from kcm_cli.testing.perturb.plugin import Perturbing

        config.pluginmanager.register(Perturbing(config), "kcm-perturb")


@pytest.fixture(scope="session")
def kcm_options() -> "HostOptions":
    """The options of the sandbox; override it in a conftest.py."""
    options: HostOptions = _testing().HostOptions()
    return options


@pytest.fixture(scope="session")
def kcm_sandbox(kcm_options: "HostOptions", pytestconfig: pytest.Config) -> "Iterator[Sandbox]":
    """A new cluster for this session. KUBECONFIG points to it, so that clients find it."""
    _show_fields(pytestconfig)
    testing = _testing()
    with testing.Sandbox(kcm_options) as sandbox, testing.pointing_to(sandbox.kubeconfig):
        yield sandbox


@pytest.fixture
def kcm_namespace(kcm_sandbox: "Sandbox") -> Iterator[str]:
    """The name of a new namespace, which is deleted after the test."""
    name = f"test-{os.getpid()}-{secrets.token_hex(4)}"
    try:
        kcm_sandbox.make_namespace(name)
        yield name
    finally:
        kcm_sandbox.drop_namespace(name)


@pytest.fixture
def kcm_kubeconfig(kcm_sandbox: "Sandbox") -> str:
    """The path of the administrator's kubeconfig."""
    return kcm_sandbox.kubeconfig


@pytest.fixture
def kcm_reset(kcm_sandbox: "Sandbox") -> Iterator[None]:
    """Restores all objects of the cluster after the test."""
    before = kcm_sandbox.snapshot()
    yield
    kcm_sandbox.reset(before)


@pytest.fixture
def kcm_operator(request: pytest.FixtureRequest, kcm_sandbox: "Sandbox") -> "Iterator[OperatorTrial]":
    """Starts the operator under test: ``kcm_operator(main)``. With ``--kcm-perturb`` it is perturbed."""
    from kcm_cli.testing.perturb.plugin import trial_of  # imported here: pytest loads this module everywhere

    named = "kcm_namespace" in request.fixturenames
    if "kcm_reset" in request.fixturenames:
        request.getfixturevalue("kcm_reset")  # so that the operator ends first
    trial = trial_of(request.node, kcm_sandbox, request.getfixturevalue("kcm_namespace") if named else "")
    try:
        yield trial
        trial.check()
    finally:
        trial.stop()


@pytest.fixture(scope="session")
def kcm_twin() -> "type[TwinOf]":
    """Creates twins of clusters: ``kcm_twin("cluster.kcm").plan(Drain("node-1"))`` (docs/plan.md)."""
    from kcm_cli.plan.testing import TwinOf  # imported here: pytest loads this module everywhere

    return TwinOf


@pytest.fixture
def kcm_start(pytestconfig: pytest.Config) -> "Iterator[Starter]":
    """Starts clusters for one test: ``kcm_start(HostOptions(nodes=1))``. They are stopped after it."""
    _show_fields(pytestconfig)
    starter: Starter = _testing().Starter()
    try:
        yield starter
    finally:
        starter.stop()


@pytest.hookimpl(hookwrapper=True)  # the other kind needs pluggy 1.2, and this module is loaded everywhere
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    """Add the contents of the cluster to the report of a failed test."""
    report: pytest.TestReport = (yield).get_result()
    if report.failed and call.when != "teardown":
        fixtures: dict[str, Any] = getattr(item, "funcargs", {})
        sandbox: Sandbox | None = fixtures.get("kcm_sandbox")
        if sandbox is not None:
            report.sections.append(("kcm sandbox", _told(sandbox, fixtures.get("kcm_namespace", "default"))))
        starter: Starter | None = fixtures.get("kcm_start")
        for own in starter.clusters if starter is not None else ():
            report.sections.append((f"kcm sandbox {own.url}", _told(own, "default")))


def _told(sandbox: Any, namespace: str) -> str:
    """What is in a namespace. sandbox: perhaps not ours, as a suite may override the fixture."""
    try:
        return str(sandbox.report(namespace))
    except Exception as error:  # noqa: BLE001 - it would end the session
        return f"no report can be given: {error}"


def _show_fields(config: pytest.Config) -> None:
    """Show the fields of log records."""
    from kcm_cli.component.logs import WithFields  # imported here: pytest loads this module in every project

    plugin = config.pluginmanager.get_plugin("logging-plugin")
    for handler in vars(plugin).values() if plugin is not None else ():
        formatter = handler.formatter if isinstance(handler, logging.Handler) else None
        if formatter is not None and not isinstance(formatter, WithFields):
            handler.setFormatter(WithFields(formatter))


class _Loggers(dict[str, Any]):
    """The loggers of the process by name."""

    def values(self) -> Any:
        return list(super().values())


def _let_loggers_be_made() -> None:
    """Let other threads make loggers at any time. pytest goes through all loggers before each phase of a test, and
    fails if there are more meanwhile: sandboxes and operators import modules in threads of their own."""
    manager: Any = logging.root.manager
    lock: Any = vars(logging)["_lock"]
    with lock:
        if not isinstance(manager.loggerDict, _Loggers):
            manager.loggerDict = _Loggers(manager.loggerDict)


def _testing() -> ModuleType:
    """What kcm_cli.testing offers, imported on demand."""
    _let_loggers_be_made()
    try:
        return importlib.import_module("kcm_cli.testing.public")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("kcm_cli"):
            raise
        why = (
            f"kcm's fixtures need the package {error.name}, which is not installed: reinstall kcm with its dependencies"
        )
        return pytest.fail(why, pytrace=False)
