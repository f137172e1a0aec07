"""``pytest --kcm-perturb``: runs each test with the fixture ``kcm_operator`` at each of its points, too."""

from collections.abc import Generator, Iterator

import pytest

from kcm_cli.sandbox.snapshots import Snapshot
from kcm_cli.testing.perturb.points import Point, kinds_of, point_of
from kcm_cli.testing.perturb.record import Record, reference_of
from kcm_cli.testing.perturb.trial import OperatorTrial, Perturbed
from kcm_cli.testing.sandbox import Sandbox

FIXTURE = "kcm_operator"
_POINT = pytest.StashKey[Point | None]()
_REFERENCE = pytest.StashKey[Record | None]()
_BASE = pytest.StashKey[Snapshot]()
_TRIAL = pytest.StashKey[OperatorTrial]()


def trial_of(node: pytest.Item, sandbox: Sandbox, namespace: str) -> OperatorTrial:
    """The trial of a test's run. Without ``--kcm-perturb`` nothing is perturbed."""
    stash = node.stash
    base = stash.get(_BASE, None) or sandbox.snapshot()
    trial = OperatorTrial(sandbox, base, namespace, stash.get(_POINT, None), stash.get(_REFERENCE, None))
    stash[_TRIAL] = trial
    return trial


class Perturbing:
    """The plugin, which is registered if the option is given."""

    def __init__(self, config: pytest.Config) -> None:
        """Raises UsageError."""
        if config.getoption("numprocesses", None) or hasattr(config, "workerinput"):
            raise pytest.UsageError("--kcm-perturb runs in one process: leave -n out")
        option = "--kcm-perturb"
        try:
            self._kinds = kinds_of(config.getoption("kcm_perturb") or "")
            option = "--kcm-replay"
            self._only = [point_of(text) for text in config.getoption("kcm_replay")]
        except ValueError as error:
            raise pytest.UsageError(f"{option}: {error}") from None
        self._most: int = config.getoption("kcm_perturb_max")
        self._stood = self._tests = 0
        self._found: list[str] = []
        self._noted: list[tuple[Point, str]] = []
        self._idle: list[str] = []
        self._absent: list[str] = []
        self._restless: list[str] = []

    @pytest.fixture(autouse=True)
    def _kcm_base(self, request: pytest.FixtureRequest) -> Iterator[None]:
        """Restores the cluster after the test."""
        if FIXTURE not in request.fixturenames:
            yield
            return
        sandbox: Sandbox = request.getfixturevalue("kcm_sandbox")
        base = request.node.stash[_BASE] = sandbox.snapshot()
        yield
        sandbox.reset(base)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        if not isinstance(item, pytest.Function) or FIXTURE not in item.fixturenames:
            return None
        self._tests += 1
        first = self._run(item, item.name, None, None)
        second = self._run(item, f"{item.name}[again]", None, None) if first is not None else None
        if first is not None and second is not None and set(first.spots.writes) != set(second.spots.writes):
            first, second = second, self._run(item, f"{item.name}[once more]", None, None)
        if first is not None and second is not None:
            reference = reference_of(first, second)
            points = self._only or reference.spots.points(self._kinds, self._most)
            self._restless += [f"{item.nodeid}: {what}" for what in sorted(reference.restless)]
            if not reference.spots.writes:
                self._idle.append(item.nodeid)
            for point in points:
                self._run(item, f"{item.name}[{point}]", point, reference)
        item.session._setupstate.teardown_exact(nextitem)
        return True

    def _run(self, item: pytest.Function, name: str, point: Point | None, reference: Record | None) -> Record | None:
        """Run one trial as a separate test. Returns its record if it passed."""
        one, sibling = _clone(item, name), _clone(item, item.name)
        one.stash[_POINT], one.stash[_REFERENCE] = point, reference
        item.session.testscollected += name != item.name  # or progress is shown beyond 100 %
        hook = item.ihook
        hook.pytest_runtest_logstart(nodeid=_nodeid(one), location=one.location)
        # imported here: pytest has no public name for it
        from _pytest.runner import runtestprotocol

        reports = runtestprotocol(one, nextitem=sibling, log=True)
        hook.pytest_runtest_logfinish(nodeid=_nodeid(one), location=one.location)
        passed = all(report.passed for report in reports) and _TRIAL in one.stash
        if point is not None and passed and not one.stash[_TRIAL].fired:
            self._absent.append(f"{item.nodeid}: {point}")
        elif point is not None:
            self._stood += passed
            if any(report.failed for report in reports):
                self._found.append(str(point))
            self._noted += [(point, reason) for report in reports if (reason := getattr(report, "wasxfail", ""))]
        return one.stash[_TRIAL].record if passed else None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        try:
            result = yield
            if _TRIAL in item.stash:
                item.stash[_TRIAL].finish()
        except Perturbed as error:
            _note(error)
            raise
        except Exception as error:
            if item.stash.get(_POINT, None) is None:
                raise
            failure = item.stash[_TRIAL].failed(error)
            _note(failure)
            raise failure from error
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if _POINT in item.stash:
            report.nodeid = _nodeid(item)
        if call.excinfo is not None and isinstance(call.excinfo.value, Perturbed):
            report.longrepr = str(call.excinfo.value)
        return report

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        lines = [f"kcm-perturb: {self._stood} points stood, {len(self._found)} not"]
        lines += [f"  no test uses the fixture {FIXTURE}: nothing was perturbed"] if not self._tests else []
        lines += [f"  --kcm-replay '{point}'" for point in self._found]
        lines += [f"  {point}: {reason.removeprefix('reason: ')}" for point, reason in self._noted]
        lines += [f"  {test}: no write of its operator came in both runs without faults" for test in self._idle]
        lines += [
            f"  {what} goes on though nothing happens: settle() waited in vain for rest" for what in self._restless
        ]
        lines += [f"  {point} did not come up: nothing was perturbed" for point in self._absent]
        terminalreporter.write_line("\n".join(lines))


def _note(failure: Perturbed) -> None:
    """End the run as xfailed if a flaw of the operator's framework explains the failure."""
    if failure.note:
        pytest.xfail(failure.note)


def _nodeid(item: pytest.Item) -> str:
    """The node id with the point, which pytest 9.2 omits for names that are not parameters."""
    return f"{item.parent.nodeid}::{item.name}" if item.parent is not None else item.nodeid


def _clone(item: pytest.Function, name: str) -> pytest.Function:
    made = type(item).from_parent(  # as the plugin that made it, such as one for coroutines, has it
        item.parent,
        name=name,
        callspec=getattr(item, "callspec", None),
        fixtureinfo=item._fixtureinfo,
        originalname=item.originalname,
    )
    made.own_markers = list(item.own_markers)
    found: pytest.Function = made
    return found
