"""CronJobs: defaults, and refused values with their causes, as a v1.36 server answers."""

from typing import Any

from tests.kit.api import Api
from tests.kit.kinds import Causes, Kind, rows

CRON_JOBS = Kind(
    "/apis/batch/v1/namespaces/default/cronjobs",
    {
        "spec": {
            "schedule": "0 * * * *",
            "jobTemplate": {
                "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}
            },
        }
    },
)
DEFAULTS: dict[str, Any] = {
    "spec.concurrencyPolicy": "Allow",
    "spec.suspend": False,
    "spec.successfulJobsHistoryLimit": 3,
    "spec.failedJobsHistoryLimit": 1,
}
REFUSED = [
    ("spec.schedule", "", "Required value"),
    ("spec.schedule", "* * *", 'Invalid value: "* * *": expected exactly 5 fields, found 3: [* * *]'),
    ("spec.schedule", "61 * * * *", 'Invalid value: "61 * * * *": end of range (61) above maximum (59): 61'),
    ("spec.schedule", "TZ=UTC 0 * * * *", 'Invalid value: "TZ=UTC 0 * * * *": cannot use TZ or CRON_TZ in schedule,…'),
    ("spec.timeZone", "", 'Invalid value: "": timeZone must be nil or non-empty string'),
    ("spec.timeZone", "Mars/Base", 'Invalid value: "Mars/Base": unknown time zone Mars/Base'),
    (
        "spec.timeZone",
        "local",
        [
            'Invalid value: "local": timeZone must be an explicit time zone as defined in https://www.iana.org…',
            'Invalid value: "local": unknown time zone local',
        ],
    ),
    ("spec.concurrencyPolicy", "Sometimes", 'Unsupported value: "Sometimes": supported values: "Allow", "Forbid", "R…'),
    ("spec.startingDeadlineSeconds", -1, "Invalid value: -1: must be greater than or equal to 0"),
    ("spec.successfulJobsHistoryLimit", -1, "Invalid value: -1: must be greater than or equal to 0"),
    ("spec.failedJobsHistoryLimit", -1, "Invalid value: -1: must be greater than or equal to 0"),
    (
        "spec.jobTemplate.spec.template.spec.restartPolicy",
        "Always",
        'Required value: valid values: "OnFailure", "Never"',
    ),
    ("spec.jobTemplate.spec.manualSelector", True, 'Unsupported value: true: supported values: "nil", "false"'),
    (
        "metadata.name",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        'Invalid value: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": must be no more than 52 charact…',
    ),
]


async def test_defaults(api: Api) -> None:
    assert await CRON_JOBS.created(api, *DEFAULTS) == DEFAULTS


@rows(REFUSED)
async def test_refused_values(api: Api, field: str, value: Any, causes: Causes) -> None:
    assert await CRON_JOBS.refusal(api, field, value, causes) == causes
