"""Gates that are locked on in this release, and can be off in an emulated older one."""

import pytest

from kcm_cli.controllers.job.plan import spec
from kcm_cli.controllers.job.plan.spec import Features
from tests.unit.controllers.job.conftest import MakeJob, MakePod
from tests.unit.controllers.job.test_status import end, sync, types

POLICY = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}]}
OLD = Features(managed_by=False, replacement=False)


@pytest.mark.parametrize(("features", "expected"), [(Features(), "someone"), (Features(managed_by=False), None)])
def test_managed_by(features: Features, expected: str | None, make_job: MakeJob) -> None:
    assert spec.other_manager(make_job(managedBy="someone"), features) == expected


@pytest.mark.parametrize(
    ("features", "extra", "made", "terminating"),
    [
        pytest.param(Features(), {}, 0, 1, id="waits"),
        pytest.param(Features(replacement=False), {}, 1, None, id="nobody reads it"),
        pytest.param(Features(replacement=False), {"podFailurePolicy": POLICY}, 0, None, id="a failure policy waits"),
    ],
)
def test_a_terminating_pod(
    features: Features,
    extra: dict[str, object],
    made: int,
    terminating: int | None,
    make_job: MakeJob,
    make_pod: MakePod,
) -> None:
    job = make_job(podReplacementPolicy="Failed", **extra)
    _, tracking = sync(job, make_pod("a", deleting="2026-01-02T03:00:20Z"), features=features)
    assert (tracking.status.active, tracking.status.terminating) == (made, terminating)


@pytest.mark.parametrize(
    ("features", "interim", "over"),
    [
        pytest.param(Features(), ["SuccessCriteriaMet"], False, id="all"),
        pytest.param(Features(managed_by=False), ["SuccessCriteriaMet"], False, id="one is enough"),
        pytest.param(Features(replacement=False), ["SuccessCriteriaMet"], False, id="the other, too"),
        pytest.param(OLD, [], True, id="none"),
    ],
)
def test_the_end_waits_for_terminating_pods(
    features: Features, interim: list[str], over: bool, make_job: MakeJob, make_pod: MakePod
) -> None:
    going = make_pod("b", deleting="2026-01-02T03:00:20Z")
    _, tracking = sync(make_job(), make_pod("a", "Succeeded"), going, features=features)
    assert types(tracking.status) == interim
    assert (end(tracking) is not None) is over


def test_the_decision_of_a_policy_is_announced(make_job: MakeJob, make_pod: MakePod) -> None:
    job = make_job(podFailurePolicy=POLICY)
    _, tracking = sync(job, make_pod("a", "Failed", exit_code=1), features=OLD)
    assert types(tracking.status) == ["FailureTarget"]
    assert types(end(tracking)) == ["FailureTarget", "Failed"]
