"""CronJobs: defaults, and refused values with their causes, as a v1.36 server answers."""

from typing import Any

from tests.kit.api import Api
from tests.kit.kinds import Kind, Row

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
REFUSED: list[Row] = [
    ("spec.schedule", "", "Required value"),
    ("spec.schedule", "* * *", 'Invalid value: "* * *": expected exactly 5 fields, found 3: [* * *]'),
    ("spec.schedule", "61 * * * *", 'Invalid value: "61 * * * *": end of range (61) above maximum (59): 61'),
    ("spec.schedule", "TZ=UTC 0 * * * *", 'Invalid value: "TZ=UTC 0 * * * *": cannot use TZ or CRON_TZ in …'),
    ("spec.timeZone", "", 'Invalid value: "": timeZone must be nil or non-empty string'),
    ("spec.timeZone", "Mars/Base", 'Invalid value: "Mars/Base": unknown time zone Mars/Base'),
    (
        "spec.timeZone",
        "local",
        [
            'Invalid value: "local": timeZone must be an explicit time zone as defined in https://www.iana.org/t…',
            'Invalid value: "local": unknown time zone local',
        ],
    ),
    ("spec.concurrencyPolicy", "Sometimes", 'Unsupported value: "Sometimes": supported values: "Allow", "Forbid"…'),
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
        'Invalid value: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": must be no more than 52 …',
    ),
    ("spec.schedule", "* * 0 * *", 'Invalid value: "* * 0 * *": beginning of range (0) below minimum (1): 0'),
    (
        "spec.schedule",
        "5-1 * * * *",
        'Invalid value: "5-1 * * * *": beginning of range (5) beyond end of range (1): 5-1',
    ),
    ("spec.schedule", "*/0 * * * *", 'Invalid value: "*/0 * * * *": step of range should be a positive number: */0'),
    (
        "spec.schedule",
        "x * * * *",
        'Invalid value: "x * * * *": failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax',
    ),
    ("spec.schedule", "@never", 'Invalid value: "@never": unrecognized descriptor: @never'),
]


async def test_table(api: Api) -> None:
    await CRON_JOBS.check(api, DEFAULTS, REFUSED, [])
