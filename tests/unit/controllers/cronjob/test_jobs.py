"""History and status of a CronJob by its Jobs."""

from collections.abc import Callable

import pytest

from kcm_cli.api.batch import CronJob, Job
from kcm_cli.controllers.cronjob.plan import status as status_of
from kcm_cli.controllers.cronjob.plan.jobs import SCHEDULED_AT, superfluous
from kcm_cli.controllers.cronjob.plan.status import Snapshot, missing, unlisted
from tests.kit.growth import grows_linearly
from tests.unit.controllers.cronjob.conftest import CREATED

MakeCronJob = Callable[..., CronJob]
MakeJob = Callable[..., Job]
ENDED = "2026-01-01T03:00:00Z"


@pytest.mark.parametrize(
    ("successful", "failed", "expected"),
    [
        pytest.param(None, None, [], id="no limits"),
        pytest.param(3, 3, [], id="within"),
        pytest.param(2, 1, ["done-1", "failed-1"], id="beyond"),
        pytest.param(0, 0, ["done-1", "done-2", "done-3", "failed-1", "failed-2"], id="none kept"),
        pytest.param(1, None, ["done-1", "done-2"], id="only one limit"),
    ],
)
def test_oldest_jobs_are_deleted_first(
    successful: int | None, failed: int | None, expected: list[str], make_cron_job: MakeCronJob, make_job: MakeJob
) -> None:
    limits = {"successfulJobsHistoryLimit": successful, "failedJobsHistoryLimit": failed}
    cron_job = make_cron_job(**{name: limit for name, limit in limits.items() if limit is not None})
    jobs = [
        make_job("running"),
        make_job("done-3", "Complete", started="2026-01-01T03:00:00Z"),
        make_job("done-2", "Complete", started="2026-01-01T02:00:00Z"),
        make_job("done-1", "Complete", started="2026-01-01T01:00:00Z"),
        make_job("failed-2", "Failed", started=None),
        make_job("failed-1", "Failed"),
    ]
    assert [job.name for job in superfluous(cron_job, jobs)] == expected


def test_equal_starts_are_ordered_by_name_and_deletions_are_not_repeated(
    make_cron_job: MakeCronJob, make_job: MakeJob
) -> None:
    jobs = [
        make_job("c", "Complete"),
        make_job("b", "Complete"),
        make_job("a", "Complete", deletionTimestamp=ENDED),
    ]
    assert [job.name for job in superfluous(make_cron_job(successfulJobsHistoryLimit=1), jobs)] == ["b"]


def reasons(snapshot: Snapshot) -> tuple[list[str], list[str]]:
    status, notices = status_of(snapshot, snapshot.cron_job.status)
    return [entry.name for entry in status.active], [notice.reason for notice in notices]


def test_finished_jobs_are_no_longer_active(make_cron_job: MakeCronJob, make_job: MakeJob) -> None:
    snapshot = Snapshot(
        cron_job=make_cron_job(active=("a", "b", "c")),
        jobs=(make_job("a", "Complete", ended=ENDED), make_job("b", "Failed"), make_job("c")),
    )
    status, notices = status_of(snapshot, snapshot.cron_job.status)
    assert [entry.name for entry in status.active] == ["c"]
    assert [notice.message for notice in notices] == [
        "Saw completed job: a, condition: Complete",
        "Saw completed job: b, condition: Failed",
    ]
    assert status.last_successful_time == ENDED


def test_only_a_later_success_is_recorded(make_cron_job: MakeCronJob, make_job: MakeJob) -> None:
    cron_job = make_cron_job()
    jobs = (make_job("a", "Complete", ended=ENDED), make_job("b", "Complete", ended="2026-01-01T02:00:00Z"))
    status, notices = status_of(Snapshot(cron_job=cron_job, jobs=jobs), cron_job.status)
    assert status.last_successful_time == ENDED
    assert notices == []
    assert status_of(Snapshot(cron_job=cron_job, jobs=jobs), status)[0] is status


def test_an_unlisted_running_job_is_reported(make_cron_job: MakeCronJob, make_job: MakeJob) -> None:
    snapshot = Snapshot(cron_job=make_cron_job(), jobs=(make_job("stray"), make_job("done", "Failed")))
    assert [job.name for job in unlisted(snapshot)] == ["stray"]
    assert reasons(snapshot) == ([], ["UnexpectedJob"])


@pytest.mark.parametrize(
    ("created", "expected"),
    [
        ("2026-01-01T03:00:02Z", ["tick-29453940"]),
        ("2026-01-01T02:59:30Z", ["tick-29453940"]),
        (CREATED, []),
        (None, []),
    ],
)
def test_a_job_is_of_its_time_if_it_was_not_created_before(
    created: str | None, expected: list[str], make_cron_job: MakeCronJob, make_job: MakeJob
) -> None:
    """A run in the future that anybody may have written would end the schedule. The clocks may differ by a minute."""
    annotations = {SCHEDULED_AT: "2026-01-01T03:00:00Z"}
    job = make_job("tick-29453940", annotations=annotations, creationTimestamp=created)
    snapshot = Snapshot(cron_job=make_cron_job(), jobs=(job,))
    assert reasons(snapshot) == (expected, [] if expected else ["UnexpectedJob"])


def test_unless_the_api_server_lists_it(make_cron_job: MakeCronJob, make_job: MakeJob) -> None:
    snapshot = Snapshot(cron_job=make_cron_job(), jobs=(make_job("new"),), known=frozenset({"uid-new"}))
    assert reasons(snapshot) == ([], [])


def test_a_deleted_job_is_no_longer_active(make_cron_job: MakeCronJob, make_job: MakeJob) -> None:
    cron_job = make_cron_job(active=("gone", "slow"))
    assert [entry.name for entry in missing(Snapshot(cron_job=cron_job))] == ["gone", "slow"]
    assert reasons(Snapshot(cron_job=cron_job, deleted=frozenset({"uid-gone"}))) == (["slow"], ["MissingJob"])


@pytest.mark.parametrize("ended", [True, False], ids=["ended", "deleted"])
def test_many_ended_jobs_take_linear_time(ended: bool, make_cron_job: MakeCronJob, make_job: MakeJob) -> None:
    def prepare(size: int) -> Callable[[], object]:
        names = tuple(f"j{number}" for number in range(size))
        cron_job = make_cron_job(active=names)
        jobs = tuple(make_job(name, "Failed") for name in names) if ended else ()
        deleted = frozenset(() if ended else (f"uid-{name}" for name in names))
        snapshot = Snapshot(cron_job=cron_job, jobs=jobs, deleted=deleted)
        assert status_of(snapshot, cron_job.status)[0].active == ()
        return lambda: status_of(snapshot, cron_job.status)

    assert grows_linearly(prepare, 600)
