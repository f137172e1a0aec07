"""Strategies of the kinds that make pods.

Source: pkg/registry/apps/*/strategy.go, pkg/registry/batch/*/strategy.go,
pkg/registry/core/{replicationcontroller,podtemplate}/strategy.go.
"""

from kcm_cli.sandbox.apiserver.defaulting.workloads import TEMPLATE_GENERATION
from kcm_cli.sandbox.apiserver.strategy import parts
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.strategy.pod_fields import drop_gated_of_template
from kcm_cli.sandbox.apiserver.strategy.warnings import workloads as warned
from kcm_cli.sandbox.apiserver.trees import keep
from kcm_cli.sandbox.apiserver.types import Tree
from kcm_cli.sandbox.apiserver.validation import cron_job, job, job_status, stateful_set, workloads

_DAEMON_SET_COUNTERS = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")
_NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")
_UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")


def _drop_gated(new: Tree, old: Tree | None = None) -> None:
    before = None if old is None else old["spec"].get("template")
    drop_gated_of_template(new["spec"].get("template"), before)


def _update(new: Tree, old: Tree) -> None:
    _drop_gated(new, old)
    parts.spec_update(new, old)


def _new_cron_job(doc: Tree) -> None:
    _new(doc)
    _drop_gated_of_job(doc, None)


def _cron_job_update(new: Tree, old: Tree) -> None:
    _drop_gated_of_job(new, old)
    parts.spec_update(new, old)


def _drop_gated_of_job(new: Tree, old: Tree | None) -> None:
    templates = (((doc or {}).get("spec") or {}).get("jobTemplate") or {} for doc in (new, old))
    after, before = ((template.get("spec") or {}).get("template") for template in templates)
    drop_gated_of_template(after, before)


def _new(doc: Tree) -> None:
    _drop_gated(doc)
    doc["status"] = {}
    parts.first_generation(doc)


def _new_with_replicas(doc: Tree) -> None:
    _drop_gated(doc)
    doc["status"] = {"replicas": 0}
    parts.first_generation(doc)


def _drop_max_unavailable(new: Tree, old: Tree | None = None) -> None:
    """The gate MaxUnavailableStatefulSet is off: the field is dropped unless the older object uses it."""
    after, before = ((doc or {}).get("spec", {}).get("updateStrategy", {}).get("rollingUpdate") for doc in (new, old))
    if after and (before or {}).get("maxUnavailable") is None:
        after.pop("maxUnavailable", None)


def _stateful_set_update(new: Tree, old: Tree) -> None:
    _drop_max_unavailable(new, old)
    _update(new, old)


def _new_stateful_set(doc: Tree) -> None:
    _drop_gated(doc)
    _drop_max_unavailable(doc)
    doc["status"] = {"replicas": 0, "availableReplicas": 0}
    parts.first_generation(doc)


def _deployment_update(new: Tree, old: Tree) -> None:
    _drop_gated(new, old)
    parts.keep_status(new, old)
    changed = new["metadata"].get("annotations") or {}
    if new["spec"] != old["spec"] or changed != (old["metadata"].get("annotations") or {}):
        parts.bump_generation(new, old)


def _deployment_status(new: Tree, old: Tree) -> None:
    parts.status_update(new, old)
    keep(new["metadata"], old["metadata"], "labels")


def _set_template_generation(doc: Tree, value: str) -> None:
    meta = doc["metadata"]
    meta["annotations"] = {**(meta.get("annotations") or {}), TEMPLATE_GENERATION: value}


def _template_generation(doc: Tree) -> int:
    text = (doc["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION, "")
    return int(text) if text.isdecimal() else 0


def _new_daemon_set(doc: Tree) -> None:
    _drop_gated(doc)
    doc["status"] = dict.fromkeys(_DAEMON_SET_COUNTERS, 0)
    parts.first_generation(doc)
    _set_template_generation(doc, str(max(1, _template_generation(doc))))


def _daemon_set_update(new: Tree, old: Tree) -> None:
    _drop_gated(new, old)
    parts.keep_status(new, old)
    template = _template_generation(old)
    if new["spec"]["template"] != old["spec"]["template"]:
        template += 1
        parts.bump_generation(new, old)
    elif new["spec"] != old["spec"]:
        parts.bump_generation(new, old)
    _set_template_generation(new, str(template))


def _new_job(doc: Tree) -> None:
    _drop_gated(doc)
    if not doc["spec"].get("manualSelector"):
        _generate_selector(doc)
    doc["status"] = {}
    parts.first_generation(doc)
    # upstream: pkg/apis/batch/v1/defaults.go#SetDefaults_Job runs again when the stored object is read
    labels = doc["spec"]["template"]["metadata"].get("labels")
    if labels and not doc["metadata"].get("labels"):
        doc["metadata"]["labels"] = dict(labels)


def _generate_selector(doc: Tree) -> None:
    meta, spec = doc["metadata"], doc["spec"]
    template = spec["template"]["metadata"]
    labels = dict(template.get("labels") or {})
    for key in _NAME_LABELS:
        labels.setdefault(key, meta.get("name", ""))
    for key in _UID_LABELS:
        labels.setdefault(key, meta.get("uid", ""))
    if meta.get("labels") is not None and meta.get("labels") is template.get("labels"):
        meta["labels"] = dict(labels)
    template["labels"] = labels
    selector = dict(spec.get("selector") or {})
    matched = dict(selector.get("matchLabels") or {})
    matched.setdefault(_UID_LABELS[1], meta.get("uid", ""))
    selector["matchLabels"] = matched
    spec["selector"] = selector


def _new_pod_template(doc: Tree) -> None:
    drop_gated_of_template(doc.get("template"))
    parts.first_generation(doc)


def _pod_template_update(new: Tree, old: Tree) -> None:
    drop_gated_of_template(new.get("template"), old.get("template"))
    if new["template"] != old["template"]:
        parts.bump_generation(new, old)


DEPLOYMENT = Strategy(
    on_create=_new,
    on_update=_deployment_update,
    on_status=_deployment_status,
    check_create=workloads.validate_deployment,
    check_update=workloads.validate_deployment_update,
    check_status=workloads.validate_deployment_status,
    warn=warned.of_replicas,
)
REPLICA_SET = Strategy(
    on_create=_new_with_replicas,
    on_update=_update,
    on_status=parts.status_update,
    check_create=workloads.validate_replica_set,
    check_update=workloads.validate_replica_set_update,
    check_status=workloads.validate_replica_set_status,
    warn=warned.of_replicas,
)
REPLICATION_CONTROLLER = Strategy(
    on_create=_new_with_replicas,
    on_update=_update,
    on_status=parts.status_update,
    check_create=workloads.validate_replication_controller,
    check_update=workloads.validate_replication_controller_update,
    check_status=workloads.validate_replication_controller_status,
    propagation="Orphan",
    warn=warned.of_replicas,
)
STATEFUL_SET = Strategy(
    on_create=_new_stateful_set,
    on_update=_stateful_set_update,
    on_status=parts.status_update,
    check_create=stateful_set.validate_stateful_set,
    check_update=stateful_set.validate_stateful_set_update,
    check_status=stateful_set.validate_stateful_set_status,
    warn=warned.of_stateful_set,
)
DAEMON_SET = Strategy(
    on_create=_new_daemon_set,
    on_update=_daemon_set_update,
    on_status=parts.status_update,
    check_create=workloads.validate_daemon_set,
    check_update=workloads.validate_daemon_set_update,
    check_status=workloads.validate_daemon_set_status,
    warn=warned.of_daemon_set,
)


def _takes_labels(doc: Tree) -> bool:
    """A job without labels shows those of its template."""
    labels = doc["spec"]["template"].get("metadata", {}).get("labels")
    return bool(labels) and doc["metadata"].get("labels") == labels


JOB = Strategy(
    on_create=_new_job,
    on_update=_update,
    on_status=parts.status_update,
    check_create=job.validate_job,
    check_update=job.validate_job_update,
    check_status=job_status.validate_job_status,
    propagation="Orphan",
    completes_on_read=_takes_labels,
    warn=warned.of_job,
)
CRON_JOB = Strategy(
    on_create=_new_cron_job,
    on_update=_cron_job_update,
    on_status=parts.status_update,
    check_create=cron_job.validate_cron_job,
    check_update=cron_job.validate_cron_job_update,
    warn=warned.of_cron_job,
)
POD_TEMPLATE = Strategy(
    on_create=_new_pod_template,
    on_update=_pod_template_update,
    check_create=workloads.validate_pod_template,
    check_update=workloads.validate_pod_template_update,
    returns_object_on_delete=True,
    warn=warned.of_pod_template,
)
