"""Job.

upstream: pkg/apis/batch/v1/defaults.go, pkg/registry/batch/job/strategy.go, pkg/printers/internalversion/printers.go
"""

from datetime import datetime

from kcm_cli.sandbox.apiserver.defaulting import fill
from kcm_cli.sandbox.apiserver.defaulting.workloads import spec_of
from kcm_cli.sandbox.apiserver.kinds.batch import job_status, job_validation
from kcm_cli.sandbox.apiserver.kinds.batch.common import job_spec, warnings_of_job_spec
from kcm_cli.sandbox.apiserver.kinds.batch.job_validation import NAME_LABELS, UID_LABELS
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.selectable import Selectable
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.strategy.warnings.workloads import changed, warnings_of_name
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, age, layout, wide
from kcm_cli.sandbox.apiserver.tables.templates import containers, selector_at
from kcm_cli.sandbox.apiserver.types import Tree

_MAX_INT32 = 2**31 - 1
_KEPT_PODS = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or "
    "set propagationPolicy=Orphan to suppress this warning"
)


def _defaults(doc: Tree) -> None:
    spec = spec_of(doc)
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if labels is not None and not doc["metadata"].get("labels"):
        # shared, as in upstream: labels that are added to the template are added to the Job, too
        doc["metadata"]["labels"] = labels
    job_spec_on_its_own(spec)
    job_spec(spec)
    doc.setdefault("status", {})


def job_spec_on_its_own(spec: Tree) -> None:
    """Set the defaults that only Jobs have, not the templates in CronJobs."""
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = spec["parallelism"] = 1
    failure_policy = spec.get("podFailurePolicy") is not None
    fill.absent(
        spec,
        parallelism=1,
        backoffLimit=6 if spec.get("backoffLimitPerIndex") is None else _MAX_INT32,
        completionMode="NonIndexed",
        suspend=False,
        podReplacementPolicy="Failed" if failure_policy else "TerminatingOrFailed",
        manualSelector=False,
    )


def of_job(new: Tree, old: Tree | None) -> list[str]:
    """Warnings about a Job."""
    return warnings_of_name(new, old) + warnings_of_job_spec(new["spec"], "spec") if changed(new, old) else []


def _new_job(doc: Tree) -> None:
    if not doc["spec"].get("manualSelector"):
        _generate_selector(doc)


def _template_labels(doc: Tree) -> None:
    """Default the labels of a Job as upstream does when it reads it, since its template has labels now."""
    labels = doc["spec"]["template"]["metadata"].get("labels")
    if labels and not doc["metadata"].get("labels"):
        doc["metadata"]["labels"] = dict(labels)


def _generate_selector(doc: Tree) -> None:
    meta, spec = doc["metadata"], doc["spec"]
    template = spec["template"]["metadata"]
    labels = dict(template.get("labels") or {})
    for key in NAME_LABELS:
        labels.setdefault(key, meta.get("name", ""))
    for key in UID_LABELS:
        labels.setdefault(key, meta.get("uid", ""))
    if meta.get("labels") is not None and meta.get("labels") is template.get("labels"):
        meta["labels"] = dict(labels)
    template["labels"] = labels
    selector = dict(spec.get("selector") or {})
    matched = dict(selector.get("matchLabels") or {})
    matched.setdefault(UID_LABELS[1], meta.get("uid", ""))
    selector["matchLabels"] = matched
    spec["selector"] = selector


def _takes_labels(doc: Tree) -> bool:
    """Whether a Job has the labels of its template, which upstream may add when it reads the Job."""
    labels = doc["spec"]["template"].get("metadata", {}).get("labels")
    return bool(labels) and doc["metadata"].get("labels") == labels


_JOB_STATES = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)


def _completions(doc: Tree, now: datetime) -> str:
    spec, succeeded = doc.get("spec") or {}, (doc.get("status") or {}).get("succeeded", 0)
    if spec.get("completions") is not None:
        return f"{succeeded}/{spec['completions']}"
    parallelism = spec.get("parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _state(doc: Tree, now: datetime) -> str:
    conditions = (doc.get("status") or {}).get("conditions") or ()
    true = {one["type"] for one in conditions if one.get("status") == "True"}
    for condition, word in _JOB_STATES:
        if condition in true or (not condition and doc["metadata"].get("deletionTimestamp")):
            return word
    return "Running"


def _duration(doc: Tree, now: datetime) -> str:
    status = doc.get("status") or {}
    start, end = status.get("startTime"), status.get("completionTime")
    if not start:
        return ""
    from_end = now if not end else datetime.fromisoformat(end)
    return age(start, from_end)


KIND = Kind(
    "batch",
    "jobs",
    defaults=_defaults,
    strategy=Strategy(
        template="spec.template",
        new_status={},
        generation=True,
        on_create=_new_job,
        check=job_validation.check,
        check_change=job_validation.check_change,
        update_steps=("name", "rules", "metadata", "change"),
        check_status=job_status.validate_job_status,
        propagation="Orphan",
        kept_dependents=_KEPT_PODS,
        on_read=_template_labels,
        completes_on_read=_takes_labels,
        warn=of_job,
    ),
    table=layout(
        NAME,
        Column("Status", "Status of the job.", _state),
        Column("Completions", "JobStatus.succeeded", _completions),
        Column("Duration", "Time required to complete the job.", _duration),
        AGE,
        *containers("spec.template"),
        wide("Selector", "JobSpec.selector", selector_at("spec.selector")),
    ),
    selectable=Selectable(
        {"status.successful": "status.succeeded"},
        refusal='field label "{label}" not supported for Job',
        absent={"status.successful": "0"},
    ),
)
