"""How pods are counted, and how a Job is finished."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from kcm_cli.api.batch import Job, JobStatus, Uncounted
from kcm_cli.api.core import Pod
from kcm_cli.controllers.job.backoff import FRESH, Backoff
from kcm_cli.controllers.job.plan import Management, Tracking, counted, finished, plan, status
from kcm_cli.controllers.job.plan.pods import job_pods_of
from kcm_cli.controllers.job.plan.spec import ALL, Features
from kcm_cli.controllers.job.plan.state import Snapshot
from kcm_cli.planning.actions import Create, Delete, Done, Failed, Outcome

NOW = datetime(2026, 1, 2, 3, 0, 30, tzinfo=UTC)
SINCE = "2026-01-02T03:00:00Z"
MakeJob = Callable[..., Job]
MakePod = Callable[..., Pod]
INDEXED = {"completionMode": "Indexed", "completions": 3, "parallelism": 3}
PER_INDEX = {**INDEXED, "backoffLimitPerIndex": 5}
IGNORE = {"rules": [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [1]}}]}


def sync(job: Job, *pods: Pod, refuse: tuple[type, ...] = (), **extra: Any) -> tuple[Management, Tracking]:
    """One sync up to the first status; writes of the ``refuse`` kinds fail."""
    planned = plan(Snapshot(job=job, pods=job_pods_of(job, pods, extra.get("features", ALL)), **extra), NOW)
    actions = (*planned.creations, *planned.deletions)
    outcome = Outcome(
        tuple(Done(action) for action in actions if not isinstance(action, refuse)),
        tuple(Failed(action, RuntimeError("no")) for action in actions if isinstance(action, refuse)),
    )
    return planned, status(planned, outcome, NOW)


def end(tracking: Tracking) -> JobStatus | None:
    """The last status of a sync whose finalizers could all be removed."""
    gone = {pod.uid for pod in tracking.release}
    return finished(tracking, counted(tracking.status, tracking.waiting - gone), NOW)


def released(tracking: Tracking) -> list[str]:
    return [pod.name for pod in tracking.release]


def types(status: JobStatus | None) -> list[str]:
    assert status is not None
    return [condition.type for condition in status.conditions if condition.status == "True"]


def test_ended_pods_are_uncounted_before_their_finalizers_are_removed(make_job: MakeJob, make_pod: MakePod) -> None:
    job = make_job(completions=5, parallelism=3)
    _, tracking = sync(job, make_pod("a", "Succeeded"), make_pod("b", "Failed"), make_pod("c"))
    assert tracking.status.uncounted_terminated_pods == Uncounted(("uid-a",), ("uid-b",))
    assert (tracking.status.succeeded, tracking.status.failed) == (0, 0)
    assert released(tracking) == ["a", "b"]
    assert tracking.waiting == {"uid-a", "uid-b", "uid-c"}


def test_pods_are_counted_when_their_finalizers_are_removed(make_job: MakeJob) -> None:
    job = make_job(status={"uncountedTerminatedPods": {"succeeded": ["uid-a", "uid-b"], "failed": ["uid-c"]}})
    status = counted(job.status, frozenset({"uid-b"}))
    assert (status.succeeded, status.failed) == (1, 1)
    assert status.uncounted_terminated_pods == Uncounted(("uid-b",), ())
    assert counted(status, frozenset({"uid-b"})) is status


def test_an_interrupted_sync_is_continued(make_job: MakeJob, make_pod: MakePod) -> None:
    """The uid is noted, the finalizer is still there: let go, not noted twice."""
    job = make_job(status={"uncountedTerminatedPods": {"succeeded": ["uid-a"]}}, completions=5)
    _, tracking = sync(job, make_pod("a", "Succeeded"))
    assert tracking.status.uncounted_terminated_pods == Uncounted(("uid-a",), ())
    assert released(tracking) == ["a"]


@pytest.mark.parametrize(
    ("noted", "phase", "expected"),
    [
        pytest.param("failed", "Succeeded", Uncounted((), ("uid-a",)), id="failed"),
        pytest.param("succeeded", "Failed", Uncounted(("uid-a",), ()), id="succeeded"),
    ],
)
def test_a_pod_counts_as_it_was_recorded(
    noted: str, phase: str, expected: Uncounted, make_job: MakeJob, make_pod: MakePod
) -> None:
    """A uid in both lists would be refused with every status from then on (kubernetes#125410)."""
    job = make_job(status={"uncountedTerminatedPods": {noted: ["uid-a"]}}, completions=1, backoffLimit=0)
    planned, tracking = sync(job, make_pod("a", phase))
    assert tracking.status.uncounted_terminated_pods == expected
    assert released(tracking) == ["a"]
    assert planned.state.succeeded + planned.state.failed == 1


def test_ignored_failures_are_not_counted(make_job: MakeJob, make_pod: MakePod) -> None:
    _, tracking = sync(make_job(podFailurePolicy=IGNORE), make_pod("a", "Failed", exit_code=1))
    assert tracking.status.uncounted_terminated_pods == Uncounted()
    assert released(tracking) == ["a"]
    assert tracking.policy_actions == {"Ignore": 1}


def test_succeeded_indexes_are_recorded(make_job: MakeJob, make_pod: MakePod) -> None:
    job = make_job(status={"completedIndexes": "0", "succeeded": 1}, **INDEXED)
    pods = make_pod("a", "Succeeded", index=2), make_pod("b", "Succeeded", index=0), make_pod("c", "Succeeded")
    _, tracking = sync(job, *pods)
    assert tracking.status.completed_indexes == "0,2"
    assert tracking.status.succeeded == 2
    assert tracking.status.uncounted_terminated_pods == Uncounted()
    assert released(tracking) == ["c", "b", "a"]


def test_indexes_beyond_the_completions_are_removed(make_job: MakeJob) -> None:
    job = make_job(status={"completedIndexes": "0-2,7", "succeeded": 4}, **{**INDEXED, "completions": 2})
    _, tracking = sync(job)
    assert (tracking.status.completed_indexes, tracking.status.succeeded) == ("0,1", 2)


def test_the_last_failed_pod_of_an_index_is_kept_for_its_successor(make_job: MakeJob, make_pod: MakePod) -> None:
    recent = "2026-01-02T03:00:25Z"
    first = make_pod("a", "Failed", index=0, exit_code=1, ended=SINCE)
    second = make_pod(
        "b",
        "Failed",
        index=0,
        exit_code=1,
        ended=recent,
        annotations={"batch.kubernetes.io/job-index-failure-count": "1"},
    )
    planned, tracking = sync(make_job(**PER_INDEX), first, second)
    assert planned.state.delayed[0].pod is second
    assert released(tracking) == ["a"]
    successor = make_pod("c", index=0)
    assert released(sync(make_job(**PER_INDEX), second, successor)[1]) == ["b"]


def test_at_most_500_uncounted_pods(make_job: MakeJob, make_pod: MakePod) -> None:
    job = make_job(completions=600, parallelism=600)
    _, tracking = sync(job, *(make_pod(f"p{n}", "Succeeded") for n in range(600)))
    assert len(tracking.release) == 500
    assert tracking.full
    assert end(tracking) is None


def test_completion(make_job: MakeJob, make_pod: MakePod) -> None:
    _, tracking = sync(make_job(), make_pod("a", "Succeeded"))
    assert types(tracking.status) == ["SuccessCriteriaMet"]
    status = end(tracking)
    assert types(status) == ["SuccessCriteriaMet", "Complete"]
    assert status is not None
    assert status.completion_time == "2026-01-02T03:00:30Z"
    assert [condition.reason for condition in status.conditions] == ["CompletionsReached"] * 2
    assert (status.succeeded, status.active, status.ready, status.terminating) == (1, 0, 0, 0)


def test_failure_counts_terminating_pods(make_job: MakeJob, make_pod: MakePod) -> None:
    job = make_job(backoffLimit=0, completions=3, parallelism=3)
    _, tracking = sync(job, make_pod("a", "Failed"), make_pod("b", ready=True), make_pod("c"))
    assert types(tracking.status) == ["FailureTarget"]
    assert tracking.status.uncounted_terminated_pods == Uncounted((), ("uid-a", "uid-b", "uid-c"))
    assert (tracking.status.active, tracking.status.ready, tracking.status.terminating) == (0, 0, 2)
    assert end(tracking) is None  # two still terminate


def test_failed_when_no_pod_is_terminating(make_job: MakeJob, make_pod: MakePod) -> None:
    announced = [{"type": "FailureTarget", "status": "True", "reason": "R", "message": "M"}]
    job = make_job(status={"conditions": announced, "failed": 1})
    _, tracking = sync(job)
    status = end(tracking)
    assert types(status) == ["FailureTarget", "Failed"]
    assert status is not None
    assert status.completion_time is None
    assert (status.conditions[1].reason, status.conditions[1].message) == ("R", "M")


@pytest.mark.parametrize(
    ("refuse", "satisfied"),
    [pytest.param((Delete,), True, id="a deletion failed"), pytest.param((), False, id="the cache is old")],
)
def test_no_ending_while_pods_can_remain(
    refuse: tuple[type, ...], satisfied: bool, make_job: MakeJob, make_pod: MakePod
) -> None:
    job = make_job(backoffLimit=0, completions=3, parallelism=3)
    _, tracking = sync(job, make_pod("a", "Failed"), make_pod("b"), refuse=refuse, satisfied=satisfied)
    assert tracking.final is None
    assert types(tracking.status) == []
    assert tracking.status.active == len(refuse)


def test_success_policy_does_not_count_other_pods(make_job: MakeJob, make_pod: MakePod) -> None:
    job = make_job(**INDEXED, successPolicy={"rules": [{"succeededCount": 1}]})
    _, tracking = sync(job, make_pod("a", "Succeeded", index=0), make_pod("b", index=1))
    assert types(tracking.status) == ["SuccessCriteriaMet"]
    assert tracking.status.uncounted_terminated_pods == Uncounted()
    assert released(tracking) == ["a", "b"]


def test_created_pods_are_active_at_once(make_job: MakeJob) -> None:
    job = make_job(completions=3, parallelism=3)
    assert sync(job)[1].status.active == 3
    assert sync(job, refuse=(Create,))[1].status.active == 0


def test_work_queue_is_complete_when_the_others_have_ended(make_job: MakeJob, make_pod: MakePod) -> None:
    job = make_job(completions=None, parallelism=2)
    assert sync(job, make_pod("a", "Succeeded"), make_pod("b"))[1].final is None
    _, tracking = sync(job, make_pod("a", "Succeeded"), make_pod("b", "Failed"))
    assert tracking.final is not None
    status = end(tracking)
    assert status is not None
    assert (status.succeeded, status.failed) == (1, 1)


def test_work_queue_without_a_success_is_not_complete(make_job: MakeJob) -> None:
    assert sync(make_job(completions=None, parallelism=0))[1].final is None


def test_nothing_to_complete_is_complete(make_job: MakeJob) -> None:
    assert types(end(sync(make_job(completions=0))[1])) == ["SuccessCriteriaMet", "Complete"]


def test_suspension_is_reported_once(make_job: MakeJob, make_pod: MakePod) -> None:
    job = make_job(suspend=True)
    _, tracking = sync(job, make_pod("a"))
    assert types(tracking.status) == ["Suspended"]
    assert [notice.reason for notice in tracking.notices] == ["Suspended"]
    assert tracking.status.start_time is None
    assert (tracking.status.active, tracking.status.terminating) == (0, 1)
    again = make_job(status={"conditions": [condition(tracking.status, "Suspended")], "startTime": None}, suspend=True)
    assert sync(again)[1].notices == ()


def test_a_suspended_job_that_ends_has_a_start(make_job: MakeJob, make_pod: MakePod) -> None:
    """A pod succeeds while it is deleted. An API server refuses the end of a Job that has not started."""
    job = make_job(suspend=True, status={"startTime": None})
    status = end(sync(job, make_pod("a", "Succeeded"))[1])
    assert types(status) == ["SuccessCriteriaMet", "Complete"]
    assert status is not None
    assert status.start_time == status.completion_time == "2026-01-02T03:00:30Z"


def test_a_suspended_job_with_nothing_to_do_needs_no_start(make_job: MakeJob) -> None:
    status = end(sync(make_job(suspend=True, completions=0, status={"startTime": None}))[1])
    assert types(status) == ["SuccessCriteriaMet", "Complete"]
    assert status is not None
    assert status.start_time is None


def test_a_job_completes_no_earlier_than_it_started(make_job: MakeJob, make_pod: MakePod) -> None:
    """The clock was set back, or another leader's was ahead. An API server refuses such a status until it is past."""
    later = "2026-01-02T05:00:00Z"
    status = end(sync(make_job(status={"startTime": later}), make_pod("a", "Succeeded"))[1])
    assert status is not None
    assert status.completion_time == later


@pytest.mark.parametrize(
    ("recorded", "phase", "completed", "failed"),
    [
        pytest.param({"failedIndexes": "0"}, "Succeeded", "", "0", id="failed before"),
        pytest.param({"completedIndexes": "0", "succeeded": 1}, "Failed", "0", "", id="completed before"),
    ],
)
def test_an_index_counts_as_it_was_recorded(
    recorded: dict[str, Any], phase: str, completed: str, failed: str, make_job: MakeJob, make_pod: MakePod
) -> None:
    """A pod that is being deleted counts as failed, and may succeed before its finalizer is removed. An API server
    refuses each status that has an index in both lists."""
    job = make_job(status=recorded, **{**PER_INDEX, "backoffLimitPerIndex": 0})
    _, tracking = sync(job, make_pod("a", phase, index=0))
    assert (tracking.status.completed_indexes, tracking.status.failed_indexes) == (completed, failed)
    assert released(tracking) == ["a"]


def test_of_two_pods_of_an_index_the_one_that_succeeded_counts(make_job: MakeJob, make_pod: MakePod) -> None:
    job = make_job(**{**PER_INDEX, "backoffLimitPerIndex": 0})
    _, tracking = sync(job, make_pod("a", "Failed", index=0), make_pod("b", "Succeeded", index=0))
    assert (tracking.status.completed_indexes, tracking.status.failed_indexes) == ("0", "")


def test_start_time_is_kept_on_suspension(make_job: MakeJob) -> None:
    features = Features(forgets_start=False)
    assert sync(make_job(suspend=True), features=features)[1].status.start_time == SINCE


def test_resumption_resets_start_time(make_job: MakeJob) -> None:
    suspended = {"type": "Suspended", "status": "True", "reason": "JobSuspended", "message": "Job suspended"}
    _, tracking = sync(make_job(status={"conditions": [suspended]}))
    assert [(c.type, c.status, c.reason) for c in tracking.status.conditions] == [("Suspended", "False", "JobResumed")]
    assert [notice.reason for notice in tracking.notices] == ["Resumed"]
    assert tracking.status.start_time == "2026-01-02T03:00:30Z"


def test_a_job_that_was_never_suspended_has_no_condition(make_job: MakeJob) -> None:
    _, tracking = sync(make_job())
    assert (tracking.status.conditions, tracking.notices) == ((), ())


def test_pods_of_a_terminating_job_lose_their_finalizer(make_job: MakeJob, make_pod: MakePod) -> None:
    job = make_job(metadata={"deletionTimestamp": SINCE, "finalizers": ["foregroundDeletion"]})
    _, tracking = sync(job, make_pod("a"))
    assert released(tracking) == ["a"]
    assert tracking.status.uncounted_terminated_pods == Uncounted()


def condition(status: JobStatus, type_: str) -> dict[str, str]:
    found = next(condition for condition in status.conditions if condition.type == type_)
    return {"type": found.type, "status": found.status, "reason": found.reason, "message": found.message}


@pytest.mark.parametrize(
    ("limits", "backoff"),
    [
        pytest.param({}, Backoff(1, datetime(2026, 1, 2, 3, 0, 29, tzinfo=UTC)), id="all indexes"),
        pytest.param({"backoffLimitPerIndex": 5}, FRESH, id="each index"),
    ],
)
def test_running_pods_are_active_while_a_failed_one_is_not_replaced_yet(
    make_job: MakeJob, make_pod: MakePod, limits: dict[str, Any], backoff: Backoff
) -> None:
    """An API server refuses a status with more ready pods than active ones (kubernetes#139428)."""
    failed = make_pod("a", "Failed", index=0, exit_code=1, ended="2026-01-02T03:00:29Z")
    running = make_pod("b", index=1, ready=True)
    planned, tracking = sync(make_job(**{**INDEXED, "completions": 2, **limits}), failed, running, backoff=backoff)
    assert (planned.wait_s is not None, planned.creations) == (True, ())
    assert (tracking.status.active, tracking.status.ready) == (1, 1)


@pytest.mark.parametrize("refused", [(), (Delete,)], ids=["deleted", "refused"])
def test_pods_that_cannot_be_deleted_stay_ready(
    make_job: MakeJob, make_pod: MakePod, refused: tuple[type, ...]
) -> None:
    job = make_job(suspend=True, completions=2, parallelism=2)
    pods = [make_pod(name, ready=True) for name in ("a", "b")]
    _, tracking = sync(job, *pods, refuse=refused)
    assert (tracking.status.active, tracking.status.ready) == ((2, 2) if refused else (0, 0))
