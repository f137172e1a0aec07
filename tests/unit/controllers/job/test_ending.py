"""Whether a Job is over, by pods and status."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from kcm_cli.api.batch import Job
from kcm_cli.api.core import Pod
from kcm_cli.controllers.job.plan import Management, plan
from kcm_cli.controllers.job.plan.pods import job_pods_of
from kcm_cli.controllers.job.plan.state import Snapshot

NOW = datetime(2026, 1, 2, 3, 0, 30, tzinfo=UTC)
MakeJob = Callable[..., Job]
MakePod = Callable[..., Pod]

INDEXED = {"completionMode": "Indexed", "completions": 3, "parallelism": 3}
PER_INDEX = {**INDEXED, "backoffLimitPerIndex": 0}
ONE_OF_THREE = {"rules": [{"succeededCount": 1}]}
FAIL_ON_42 = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]}
IGNORE_1 = {"rules": [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [1]}}]}


def condition(type_: str, status: str = "True", reason: str = "R", message: str = "M") -> dict[str, Any]:
    return {"type": type_, "status": status, "reason": reason, "message": message}


def planned(job: Job, *pods: Pod) -> Management:
    return plan(Snapshot(job=job, pods=job_pods_of(job, pods)), NOW)


def ending(job: Job, *pods: Pod) -> tuple[str, str] | None:
    found = planned(job, *pods).ending
    return None if found is None else (found.type, found.reason)


def test_the_job_continues_until_a_decision(make_job: MakeJob, make_pod: MakePod) -> None:
    assert ending(make_job(), make_pod("a"), make_pod("b", "Failed")) is None


@pytest.mark.parametrize(
    ("limit", "counted", "failing", "expected"),
    [
        pytest.param(0, 0, 0, None, id="no failure"),
        pytest.param(0, 0, 1, ("FailureTarget", "BackoffLimitExceeded"), id="none allowed"),
        pytest.param(2, 1, 1, None, id="at the limit"),
        pytest.param(2, 2, 1, ("FailureTarget", "BackoffLimitExceeded"), id="beyond the limit"),
    ],
)
def test_backoff_limit(
    limit: int, counted: int, failing: int, expected: object, make_job: MakeJob, make_pod: MakePod
) -> None:
    job = make_job(status={"failed": counted}, backoffLimit=limit)
    assert ending(job, *(make_pod(f"p{n}", "Failed") for n in range(failing))) == expected


def test_uncounted_failures_count(make_job: MakeJob, make_pod: MakePod) -> None:
    job = make_job(status={"uncountedTerminatedPods": {"failed": ["uid-a"]}}, backoffLimit=0)
    found = planned(job, make_pod("a", "Failed"))
    assert found.state.failed == 1
    assert found.ending is not None


def test_ignored_failures_do_not_count(make_job: MakeJob, make_pod: MakePod) -> None:
    job = make_job(backoffLimit=0, podFailurePolicy=IGNORE_1)
    assert ending(job, make_pod("a", "Failed", exit_code=1)) is None
    assert ending(job, make_pod("a", "Failed", exit_code=2)) == ("FailureTarget", "BackoffLimitExceeded")


@pytest.mark.parametrize(
    ("limit", "restarts", "expected"),
    [
        pytest.param(3, [1, 1], False, id="below"),
        pytest.param(3, [1, 2], True, id="together at the limit"),
        pytest.param(0, [0], False, id="none allowed, none seen"),
        pytest.param(0, [1], True, id="none allowed"),
    ],
)
def test_restarts_in_place_count(
    limit: int, restarts: list[int], expected: bool, make_job: MakeJob, make_pod: MakePod
) -> None:
    template = {"spec": {"restartPolicy": "OnFailure", "containers": [{"name": "c"}]}}
    pods = [make_pod(f"p{n}", restarts=count) for n, count in enumerate(restarts)]
    found = ending(make_job(backoffLimit=limit, template=template), *pods, make_pod("done", "Succeeded", restarts=9))
    assert (found is not None) == expected
    assert ending(make_job(backoffLimit=limit), *pods) is None


@pytest.mark.parametrize(
    ("deadline", "suspend", "expected", "left_s"),
    [
        pytest.param(31, False, None, 1, id="not yet"),
        pytest.param(30, False, ("FailureTarget", "DeadlineExceeded"), None, id="just now"),
        pytest.param(5, True, None, None, id="not while suspended"),
        pytest.param(None, False, None, None, id="none"),
    ],
)
def test_deadline(
    deadline: int | None, suspend: bool, expected: object, left_s: float | None, make_job: MakeJob
) -> None:
    job = make_job(activeDeadlineSeconds=deadline, suspend=suspend)
    assert ending(job) == expected
    assert planned(job).again_s == left_s


def test_failure_policy_has_priority_over_backoff_limit(make_job: MakeJob, make_pod: MakePod) -> None:
    job = make_job(backoffLimit=0, podFailurePolicy=FAIL_ON_42)
    found = planned(job, make_pod("a", "Failed", exit_code=42)).ending
    assert found is not None
    assert (found.type, found.reason) == ("FailureTarget", "PodFailurePolicy")
    assert found.message == "Container c for pod ns/a failed with exit code 42 matching FailJob rule at index 0"


@pytest.mark.parametrize(
    ("spec", "status", "failing", "expected"),
    [
        pytest.param({}, {}, [0], None, id="others go on"),
        pytest.param({"maxFailedIndexes": 0}, {}, [0], "MaxFailedIndexesExceeded", id="no failed index allowed"),
        pytest.param({"maxFailedIndexes": 1}, {"failedIndexes": "2"}, [0], "MaxFailedIndexesExceeded", id="too many"),
        pytest.param({"maxFailedIndexes": 2}, {"failedIndexes": "2"}, [0], None, id="as many as allowed"),
        pytest.param({}, {"failedIndexes": "2", "completedIndexes": "1"}, [0], "FailedIndexes", id="all are over"),
        pytest.param({"backoffLimitPerIndex": 1}, {}, [0], None, id="to be tried again"),
    ],
)
def test_failed_indexes(
    spec: dict[str, Any],
    status: dict[str, Any],
    failing: list[int],
    expected: str | None,
    make_job: MakeJob,
    make_pod: MakePod,
) -> None:
    job = make_job(status=status, **{**PER_INDEX, **spec})
    pods = [make_pod(f"p{index}", "Failed", index=index) for index in failing]
    assert ending(job, *pods) == (None if expected is None else ("FailureTarget", expected))


def test_failures_of_an_index_are_read_from_its_pod(make_job: MakeJob, make_pod: MakePod) -> None:
    job = make_job(**{**PER_INDEX, "backoffLimitPerIndex": 2})
    for count, failed in (("1", ""), ("2", "0"), ("x", ""), ("-5", ""), ("99999999999", "")):
        pod = make_pod("a", "Failed", index=0, annotations={"batch.kubernetes.io/job-index-failure-count": count})
        indexes = planned(job, pod).state.failed_indexes
        assert indexes is not None
        assert indexes.text == failed, count


def test_fail_index_action_needs_no_limit(make_job: MakeJob, make_pod: MakePod) -> None:
    policy = {"rules": [{"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [42]}}]}
    job = make_job(**{**PER_INDEX, "backoffLimitPerIndex": 5, "podFailurePolicy": policy})
    indexes = planned(job, make_pod("a", "Failed", index=1, exit_code=42)).state.failed_indexes
    assert indexes is not None
    assert indexes.text == "1"


def test_success_policy(make_job: MakeJob, make_pod: MakePod) -> None:
    job = make_job(**INDEXED, successPolicy=ONE_OF_THREE)
    assert ending(job, make_pod("a", index=0)) is None
    assert ending(job, make_pod("a", "Succeeded", index=0)) == ("SuccessCriteriaMet", "SuccessPolicy")


def test_failure_has_priority_over_success(make_job: MakeJob, make_pod: MakePod) -> None:
    job = make_job(**INDEXED, successPolicy=ONE_OF_THREE, backoffLimit=0)
    pods = make_pod("a", "Succeeded", index=0), make_pod("b", "Failed", index=1)
    assert ending(job, *pods) == ("FailureTarget", "BackoffLimitExceeded")


@pytest.mark.parametrize(
    ("announced", "expected"),
    [
        pytest.param([condition("SuccessCriteriaMet")], ("SuccessCriteriaMet", "R"), id="success stands"),
        pytest.param([condition("FailureTarget")], ("Failed", "R"), id="failure stands"),
        pytest.param(
            [condition("FailureTarget"), condition("SuccessCriteriaMet")], ("SuccessCriteriaMet", "R"), id="both"
        ),
        pytest.param([condition("FailureTarget", "False")], ("FailureTarget", "BackoffLimitExceeded"), id="not true"),
    ],
)
def test_an_announced_ending_is_kept(
    announced: list[dict[str, Any]], expected: object, make_job: MakeJob, make_pod: MakePod
) -> None:
    job = make_job(status={"conditions": announced}, backoffLimit=0)
    assert ending(job, make_pod("a", "Failed")) == expected


@pytest.mark.parametrize(
    ("spec", "failed"),
    [
        pytest.param({}, 1, id="deleted is failed"),
        pytest.param({"podReplacementPolicy": "Failed"}, 0, id="unless it has to end first"),
        pytest.param({"podFailurePolicy": IGNORE_1}, 0, id="or a policy has to see how it ends"),
    ],
)
def test_deleted_pods(spec: dict[str, Any], failed: int, make_job: MakeJob, make_pod: MakePod) -> None:
    state = planned(make_job(**spec), make_pod("a", deleting="2026-01-02T03:00:00Z")).state
    assert state.failed == failed
    assert state.terminating == 1
    assert not state.active


def test_pods_counted_before_are_not_counted_again(make_job: MakeJob, make_pod: MakePod) -> None:
    job = make_job(completions=9, parallelism=9)
    pods = (
        make_pod("a", "Succeeded", finalizers=()),
        make_pod("b", "Succeeded"),
        make_pod("d", "Failed", finalizers=()),
    )
    state = planned(job, *pods).state
    assert (state.succeeded, state.failed) == (1, 0)


@pytest.mark.parametrize("index", [None, 7, -1, "x"])
def test_pods_without_an_index_do_not_count(index: object, make_job: MakeJob, make_pod: MakePod) -> None:
    state = planned(
        make_job(**INDEXED), make_pod("a", "Succeeded", index=index), make_pod("b", "Failed", index=index)
    ).state
    assert (state.succeeded, state.failed) == (0, 0)


def test_start_time_is_set_unless_suspended(make_job: MakeJob) -> None:
    assert planned(make_job(status={"startTime": None})).state.status.start_time == "2026-01-02T03:00:30Z"
    assert planned(make_job(status={"startTime": None}, suspend=True)).state.status.start_time is None
