"""CronJobs.

Source: pkg/apis/batch/validation/validation.go#ValidateCronJobCreate.
"""

from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import cron_schedule, errors, labels, metadata, numbers
from kcm_cli.sandbox.apiserver.validation.job import validate_spec_of_template

_NAME_MAX = 52
_POLICIES = ("Allow", "Forbid", "Replace")


def validate_cron_job(doc: Tree) -> list[FieldError]:
    """A new CronJob; its jobs' names must have room for the time."""
    found = metadata.validate_meta(doc["metadata"], True, metadata.subdomain) + _spec(doc["spec"], None)
    name = doc["metadata"].get("name", "")
    if len(name) > _NAME_MAX:
        found.append(errors.invalid("metadata.name", name, f"must be no more than {_NAME_MAX} characters"))
    return found


def validate_cron_job_update(new: Tree, old: Tree) -> list[FieldError]:
    found = metadata.validate_meta_update(new["metadata"], old["metadata"])
    return found + _spec(new["spec"], old["spec"])


def _spec(spec: Tree, known: Tree | None) -> list[FieldError]:
    schedule, zone = spec.get("schedule", ""), spec.get("timeZone")
    found: list[FieldError] = []
    if schedule:
        zoned = known is not None and "TZ" in known.get("schedule", "")
        found += _schedule(schedule, zone, zoned)
    else:
        found.append(errors.required("spec.schedule"))
    found += numbers.non_negative(spec, ("startingDeadlineSeconds",), "spec")
    if zone is not None and (known is None or known.get("timeZone") != zone):
        found += errors.invalid_each("spec.timeZone", zone, cron_schedule.zone_problems(zone))
    policy = spec.get("concurrencyPolicy", "")
    if not policy:
        found.append(errors.required("spec.concurrencyPolicy"))
    elif policy not in _POLICIES:
        found.append(errors.not_supported("spec.concurrencyPolicy", policy, _POLICIES))
    found += _template(spec, known)
    return found + numbers.non_negative(spec, ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"), "spec")


def _schedule(schedule: str, zone: str | None, zoned: bool) -> list[FieldError]:
    """``zoned``: an older object's schedule has a time zone in it, so that this one may, too."""
    found: list[FieldError] = []
    if problem := cron_schedule.schedule_problem(schedule):
        found.append(errors.invalid("spec.schedule", schedule, problem))
    if "TZ" in schedule and not zoned:
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        found.append(errors.invalid("spec.schedule", schedule, detail))
    elif "TZ" in schedule and zone is not None:
        detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        found.append(errors.invalid("spec.schedule", schedule, detail))
    return found


def _template(spec: Tree, known: Tree | None) -> list[FieldError]:
    path = "spec.jobTemplate.spec"
    job = (spec.get("jobTemplate") or {}).get("spec") or {}
    before = None if known is None else (known.get("jobTemplate") or {}).get("spec") or {}
    found = validate_spec_of_template(job, path, before)
    if job.get("selector") is not None:
        shown = labels.shown(job["selector"])
        found.append(errors.invalid(f"{path}.selector", shown, "`selector` will be auto-generated"))
    if job.get("manualSelector"):
        found.append(errors.not_supported(f"{path}.manualSelector", True, ["nil", "false"]))
    return found
