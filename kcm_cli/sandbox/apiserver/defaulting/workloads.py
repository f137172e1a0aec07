"""Defaults of the kinds that make pods.

Source: pkg/apis/apps/v1/defaults.go, pkg/apis/batch/v1/defaults.go, pkg/apis/core/v1/defaults.go.
"""

from kcm_cli.sandbox.apiserver.defaulting import fill, pod, storage
from kcm_cli.sandbox.apiserver.types import Tree

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
"""An annotation that stands for a field of older versions, which counts from 0."""
_ONE_REPLICA = (("replicas", 1),)
_DEPLOYMENT = (*_ONE_REPLICA, ("revisionHistoryLimit", 10), ("progressDeadlineSeconds", 600))
_STATEFUL_SET = (*_ONE_REPLICA, ("revisionHistoryLimit", 10))
_MAX_INT32 = 2**31 - 1


def deployment(doc: Tree) -> None:
    spec = _spec(doc)
    fill.absent(spec, _DEPLOYMENT)
    strategy = spec.setdefault("strategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = fill.made(strategy, "rollingUpdate")
        fill.absent(rolling, (("maxUnavailable", "25%"), ("maxSurge", "25%")))
    pod.template(spec)


def replica_set(doc: Tree) -> None:
    spec = _spec(doc)
    fill.absent(spec, _ONE_REPLICA)
    pod.template(spec)
    _status(doc, ("replicas",))


def daemon_set(doc: Tree) -> None:
    spec = _spec(doc)
    meta: Tree = doc.setdefault("metadata", {})
    meta["annotations"] = {TEMPLATE_GENERATION: "0", **(meta.get("annotations") or {})}
    strategy = spec.setdefault("updateStrategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        fill.absent(fill.made(strategy, "rollingUpdate"), (("maxUnavailable", 1), ("maxSurge", 0)))
    fill.absent(spec, (("revisionHistoryLimit", 10),))
    pod.template(spec)
    _status(doc, ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"))


def stateful_set(doc: Tree) -> None:
    spec = _spec(doc)
    if not spec.get("podManagementPolicy"):
        spec["podManagementPolicy"] = "OrderedReady"
    strategy = spec.setdefault("updateStrategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        fill.made(strategy, "rollingUpdate")
    rolling = strategy.get("rollingUpdate")
    if strategy["type"] == "RollingUpdate" and rolling is not None:
        fill.absent(rolling, (("partition", 0),))
    retention = fill.made(spec, "persistentVolumeClaimRetentionPolicy")
    for field in ("whenDeleted", "whenScaled"):
        if not retention.get(field):
            retention[field] = "Retain"
    fill.absent(spec, _STATEFUL_SET)
    spec.setdefault("serviceName", "")
    pod.template(spec)
    for claim in spec.get("volumeClaimTemplates") or ():
        claim.setdefault("metadata", {})
        claim["apiVersion"], claim["kind"] = "v1", "PersistentVolumeClaim"
        storage.claim(claim)
    _status(doc, ("replicas", "availableReplicas"))


def replication_controller(doc: Tree) -> None:
    spec = _spec(doc)
    if (found := spec.get("template")) is not None:
        labels = (found.get("metadata") or {}).get("labels")
        if labels is not None:
            if not spec.get("selector"):
                spec["selector"] = dict(labels)
            if not doc["metadata"].get("labels"):
                doc["metadata"]["labels"] = dict(labels)
        pod.template(spec)
    fill.absent(spec, _ONE_REPLICA)
    _status(doc, ("replicas",))


def pod_template(doc: Tree) -> None:
    pod.template(doc)


def job(doc: Tree) -> None:
    spec = _spec(doc)
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if labels is not None and not doc["metadata"].get("labels"):
        # The same mapping, as upstream shares it: what is added to the template's labels shows on the Job, too.
        doc["metadata"]["labels"] = labels
    job_spec_on_its_own(spec)
    _job_spec(spec)
    doc.setdefault("status", {})


def job_spec_on_its_own(spec: Tree) -> None:
    """What only Jobs get, not the templates in CronJobs."""
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = spec["parallelism"] = 1
    failure_policy = spec.get("podFailurePolicy") is not None
    fill.absent(
        spec,
        (
            ("parallelism", 1),
            ("backoffLimit", 6 if spec.get("backoffLimitPerIndex") is None else _MAX_INT32),
            ("completionMode", "NonIndexed"),
            ("suspend", False),
            ("podReplacementPolicy", "Failed" if failure_policy else "TerminatingOrFailed"),
            ("manualSelector", False),
        ),
    )


def _job_spec(spec: Tree) -> None:
    pod.template(spec)
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            if not pattern.get("status"):
                pattern["status"] = "True"


def cron_job(doc: Tree) -> None:
    spec = _spec(doc)
    if not spec.get("concurrencyPolicy"):
        spec["concurrencyPolicy"] = "Allow"
    fill.absent(spec, (("suspend", False), ("successfulJobsHistoryLimit", 3), ("failedJobsHistoryLimit", 1)))
    spec.setdefault("schedule", "")
    found = spec.setdefault("jobTemplate", {})
    found.setdefault("metadata", {})
    _job_spec(found.setdefault("spec", {}))
    doc.setdefault("status", {})


def _spec(doc: Tree) -> Tree:
    doc.setdefault("status", {})
    spec: Tree = doc.setdefault("spec", {})
    return spec


def _status(doc: Tree, counters: tuple[str, ...]) -> None:
    """Counters that are written even when they are zero."""
    status = doc["status"]
    for field in counters:
        status.setdefault(field, 0)
