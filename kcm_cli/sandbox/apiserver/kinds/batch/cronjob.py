"""CronJob.

upstream: pkg/apis/batch/v1/defaults.go, pkg/apis/batch/validation,
pkg/registry/batch/cronjob/strategy.go, pkg/printers/internalversion/printers.go
"""

import re
import zoneinfo
from datetime import datetime
from functools import cache

from kcm_cli.machinery import cron
from kcm_cli.machinery.errors import FormatError
from kcm_cli.sandbox.apiserver.defaulting import fill
from kcm_cli.sandbox.apiserver.defaulting.workloads import spec_of
from kcm_cli.sandbox.apiserver.kinds.batch.common import job_spec, warnings_of_job_spec
from kcm_cli.sandbox.apiserver.kinds.batch.job_validation import validate_spec_of_template
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.strategy.warnings.workloads import changed, warnings_of_name
from kcm_cli.sandbox.apiserver.tables.column import (
    AGE,
    NAME,
    UNSET,
    Column,
    age,
    count,
    flag,
    layout,
    number,
    of_field,
    shown,
    wide,
)
from kcm_cli.sandbox.apiserver.tables.templates import NONE, containers, selector_at
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels, rules

_NAME_MAX = 52


def _check(doc: Tree, old: Tree | None) -> Errors:
    """Check a new or changed CronJob. The names of Jobs must have room for the time."""
    spec, known = doc["spec"], None if old is None else old["spec"]
    yield from _SCHEDULED(spec, "spec")
    yield from _schedule(spec, known)
    yield from _DEADLINE(spec, "spec")
    zone = spec.get("timeZone")
    if zone is not None and (known is None or known.get("timeZone") != zone):
        yield from errors.invalid_each("spec.timeZone", zone, zone_problems(zone))
    yield from _POLICY(spec, "spec")
    job = (spec.get("jobTemplate") or {}).get("spec") or {}
    before = None if known is None else (known.get("jobTemplate") or {}).get("spec") or {}
    yield from validate_spec_of_template(job, "spec.jobTemplate.spec", before)
    yield from _GENERATED(job, "spec.jobTemplate.spec")
    yield from _HISTORY(spec, "spec")
    name = doc["metadata"].get("name", "")
    if old is None and len(name) > _NAME_MAX:
        yield errors.invalid("metadata.name", name, f"must be no more than {_NAME_MAX} characters")


def _schedule(spec: Tree, known: Tree | None) -> Errors:
    """Check the schedule. It may have a time zone if the old object's has one."""
    schedule = spec.get("schedule", "")
    if schedule and (problem := schedule_problem(schedule)):
        yield errors.invalid("spec.schedule", schedule, problem)
    if "TZ" not in schedule:
        return
    if known is None or "TZ" not in known.get("schedule", ""):
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        yield errors.invalid("spec.schedule", schedule, detail)
    elif spec.get("timeZone") is not None:
        detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        yield errors.invalid("spec.schedule", schedule, detail)


def _selector(selector: Tree, path: str) -> Errors:
    yield errors.invalid(path, labels.shown(selector), "`selector` will be auto-generated")


def _manual(manual: bool, path: str) -> Errors:
    yield errors.not_supported(path, True, ["nil", "false"])


_SCHEDULED, _DEADLINE = (
    rules.fields(rules.required("schedule")),
    rules.fields(*rules.counters("startingDeadlineSeconds")),
)
_POLICY = rules.fields_of("batch.v1.CronJobSpec", rules.one_of("concurrencyPolicy"))
_GENERATED = rules.fields(rules.optional("selector", _selector), rules.nonempty("manualSelector", _manual))
_HISTORY = rules.fields(*rules.counters("successfulJobsHistoryLimit", "failedJobsHistoryLimit"))


_zone_part = re.compile(r"[A-Za-z.\-_0-9+]{1,14}").fullmatch


def schedule_problem(schedule: str) -> str:
    """The error of a schedule; empty if it is valid."""
    try:
        cron.parse(schedule)
    except FormatError as error:
        return str(error)
    return ""


@cache
def _zones() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones())


def _zone_problem(zone: str) -> str:
    if zone in ("", "UTC", "Local") or zone in _zones():
        return ""
    return f"unknown time zone {zone}"


def zone_problems(zone: str) -> list[str]:
    """The errors of the name of a time zone."""
    if not zone:
        return ["timeZone must be nil or non-empty string"]
    for part in zone.split("/"):
        if part in (".", "..") or part.startswith("-") or not _zone_part(part):
            return [f"unknown time zone {zone}"]
    found: list[str] = []
    if zone.lower() == "local":
        found.append("timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones")
    if problem := _zone_problem(zone):
        found.append(problem)
    return found


def _defaults(doc: Tree) -> None:
    spec = spec_of(doc)
    fill.empty(spec, concurrencyPolicy="Allow")
    fill.absent(spec, suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)
    spec.setdefault("schedule", "")
    found = spec.setdefault("jobTemplate", {})
    found.setdefault("metadata", {})
    job_spec(found.setdefault("spec", {}))
    doc.setdefault("status", {})


_ZONE = (
    "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
    "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
)


def of_cron_job(new: Tree, old: Tree | None) -> list[str]:
    """Warnings about a CronJob."""
    spec, found = new["spec"], list[str]()
    if changed(new, old):
        job = (spec.get("jobTemplate") or {}).get("spec") or {}
        found += warnings_of_name(new, old) + warnings_of_job_spec(job, "spec.jobTemplate.spec")
    return [*found, _ZONE] if old is not None and "TZ" in spec.get("schedule", "") else found


def _last(doc: Tree, now: datetime) -> str:
    last = (doc.get("status") or {}).get("lastScheduleTime")
    return age(last, now) if last else NONE


KIND = Kind(
    "batch",
    "cronjobs",
    defaults=_defaults,
    strategy=Strategy(
        template="spec.jobTemplate.spec.template",
        new_status={},
        generation=True,
        check=_check,
        warn=of_cron_job,
    ),
    table=layout(
        NAME,
        Column("Schedule", *of_field("CronJob", "spec.schedule")),
        Column("Timezone", *of_field("CronJob", "spec.timeZone", NONE)),
        flag("Suspend", "CronJobSpec.suspend", shown("spec.suspend", UNSET, str)),
        number("Active", "CronJobStatus.active", count("status.active")),
        Column("Last Schedule", "CronJobStatus.lastScheduleTime", _last),
        AGE,
        *containers("spec.jobTemplate.spec.template"),
        wide("Selector", "JobSpec.selector", selector_at("spec.jobTemplate.spec.selector")),
    ),
)
