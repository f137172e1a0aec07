from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from kcm_cli.api.batch import CronJob
from kcm_cli.controllers.cronjob.plan import NextRun, plan
from kcm_cli.controllers.cronjob.plan.jobs import job_for, job_name
from kcm_cli.controllers.cronjob.plan.status import Snapshot, started

NOW = datetime(2026, 1, 1, 5, 10, tzinfo=UTC)
FIVE = datetime(2026, 1, 1, 5, tzinfo=UTC)
LAST = "2026-01-01T04:00:00Z"
MakeCronJob = Callable[..., CronJob]
ADVICE = "see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"


def decided(cron_job: CronJob) -> NextRun:
    return plan(Snapshot(cron_job=cron_job), cron_job.status, NOW)


@pytest.mark.parametrize(
    ("spec", "start", "event"),
    [
        pytest.param({"last": LAST}, FIVE, None, id="due"),
        pytest.param({"last": "2026-01-01T05:00:00Z"}, None, None, id="not due"),
        pytest.param({"last": LAST, "suspend": True}, None, None, id="suspended"),
        pytest.param({"last": LAST, "deleting": True}, None, None, id="being deleted"),
        pytest.param({"last": LAST, "active": ("tick-29454060",)}, None, None, id="its job is active"),
        pytest.param({"last": LAST, "active": ("other",)}, FIVE, None, id="another is active"),
        pytest.param(
            {"last": LAST, "active": ("other",), "concurrencyPolicy": "Forbid"},
            None,
            (
                "JobAlreadyActive",
                "Not starting job because prior execution is running and concurrency policy is Forbid",
            ),
            id="forbid",
        ),
        pytest.param({"last": LAST, "active": ("other",), "concurrencyPolicy": "Replace"}, FIVE, None, id="replace"),
        pytest.param({"last": LAST, "startingDeadlineSeconds": 601}, FIVE, None, id="within the deadline"),
        pytest.param({"last": LAST, "startingDeadlineSeconds": 600}, None, None, id="at the deadline"),
        pytest.param(
            {"schedule": "* * * * *", "last": "2026-01-01T01:00:00Z"},
            NOW,
            (
                "TooManyMissedTimes",
                "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew",
            ),
            id="many missed",
        ),
        pytest.param(
            {"last": LAST, "timeZone": "No/Where"},
            None,
            ("UnknownTimeZone", 'invalid timeZone: "No/Where": unknown time zone No/Where'),
            id="unknown zone",
        ),
        pytest.param(
            {"schedule": "x", "last": LAST},
            None,
            ("UnparseableSchedule", 'unparseable schedule: "x" : expected exactly 5 fields, found 1: [x]'),
            id="malformed",
        ),
        pytest.param(
            {"schedule": "0 0 31 2 *", "last": LAST},
            None,
            (
                "InvalidSchedule",
                "invalid schedule: 0 0 31 2 * : time difference between two schedules is less than 1 second",
            ),
            id="impossible",
        ),
        pytest.param(
            {"schedule": "TZ=Asia/Tokyo 0 14 * * *", "last": LAST},
            FIVE,
            (
                "UnsupportedSchedule",
                f'CRON_TZ or TZ used in schedule "TZ=Asia/Tokyo 0 14 * * *" is not officially supported, {ADVICE}',
            ),
            id="zone in the schedule",
        ),
        pytest.param({"schedule": "0 14 * * *", "timeZone": "Asia/Tokyo", "last": LAST}, FIVE, None, id="zone"),
    ],
)
def test_starts_of_jobs(
    spec: dict[str, Any], start: datetime | None, event: tuple[str, str] | None, make_cron_job: MakeCronJob
) -> None:
    found = decided(make_cron_job(**spec))
    assert found.start == start
    assert [(notice.reason, notice.message) for notice in found.notices] == ([] if event is None else [event])


@pytest.mark.parametrize(
    ("spec", "again_s"),
    [
        pytest.param({"last": LAST}, 3000.1, id="started"),
        pytest.param({"last": LAST, "concurrencyPolicy": "Forbid", "active": ("x",)}, 3000.1, id="held back"),
        pytest.param({"last": LAST, "suspend": True}, None, id="suspended"),
        pytest.param({"schedule": "x"}, None, id="malformed"),
        pytest.param({"last": LAST, "deleting": True}, None, id="being deleted"),
    ],
)
def test_requeue_after(spec: dict[str, Any], again_s: float | None, make_cron_job: MakeCronJob) -> None:
    assert decided(make_cron_job(**spec)).again_s == pytest.approx(again_s)


def test_a_narrowly_missed_time_is_reported(make_cron_job: MakeCronJob) -> None:
    """The deadline of 10 s has passed since the latest time by the clock, not by the seconds of the search."""
    cron_job = make_cron_job("@every 10m", last="2026-01-01T05:00:00Z", startingDeadlineSeconds=0)
    found = plan(Snapshot(cron_job=cron_job), cron_job.status, NOW.replace(microsecond=1))
    assert found.start is None


def test_a_job_is_named_by_its_scheduled_minute(make_cron_job: MakeCronJob) -> None:
    cron_job = make_cron_job()
    assert job_name(cron_job, FIVE) == "tick-29454060" == job_name(cron_job, FIVE.replace(second=59))


@pytest.mark.parametrize(
    ("zone", "shown"),
    [
        pytest.param(None, "2026-01-01T05:00:00Z", id="none"),
        pytest.param("Etc/UTC", "2026-01-01T05:00:00Z", id="UTC"),
        pytest.param("Asia/Kolkata", "2026-01-01T10:30:00+05:30", id="east"),
        pytest.param("America/New_York", "2026-01-01T00:00:00-05:00", id="west"),
    ],
)
def test_job(zone: str | None, shown: str, make_cron_job: MakeCronJob) -> None:
    job = job_for(make_cron_job(**({} if zone is None else {"timeZone": zone})), FIVE)
    assert job == {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "tick-29454060",
            "namespace": "ns",
            "labels": {"a": "b"},
            "annotations": {"c": "d", "batch.kubernetes.io/cronjob-scheduled-timestamp": shown},
            "ownerReferences": [
                {
                    "apiVersion": "batch/v1",
                    "kind": "CronJob",
                    "name": "tick",
                    "uid": "cron-uid",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}},
    }


def test_a_started_job_is_active(make_cron_job: MakeCronJob, make_job: Callable[..., Any]) -> None:
    status = started(make_cron_job(active=("old",)).status, make_job("new"), FIVE)
    assert [entry.name for entry in status.active] == ["old", "new"]
    assert (status.active[1].uid, status.active[1].api_version, status.active[1].resource_version) == (
        "uid-new",
        "batch/v1",
        "7",
    )
    assert status.last_schedule_time == "2026-01-01T05:00:00Z"
