"""Kinds that make pods.

Source: pkg/registry/apps/*/strategy.go, pkg/registry/batch/*/strategy.go, pkg/api/job/warnings.go.
"""

from collections.abc import Callable

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.strategy.warnings import pods, storage
from kcm_cli.sandbox.apiserver.types import Tree

_SOFT_COMPLETIONS, _SOFT_PARALLELISM = 100_000, 10_000
_MANY_INDEXES = (
    "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, "
    "Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
)
_HISTORY = "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
_ZONE = (
    "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
    "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
)

Warn = Callable[[Tree, Tree | None], list[str]]


def _changed(new: Tree, old: Tree | None) -> bool:
    return old is None or new["metadata"].get("generation") != old["metadata"].get("generation")


def _name(new: Tree, old: Tree | None) -> list[str]:
    messages = names.dns1123_label(new["metadata"].get("name", "")) if old is None else ()
    if not messages:
        return []
    text = "this is used in Pod names and hostnames, which can result in surprising behavior"
    return [f"metadata.name: {text}; a DNS label is recommended: [{' '.join(messages)}]"]


def of_replicas(new: Tree, old: Tree | None) -> list[str]:
    """A Deployment, ReplicaSet or ReplicationController."""
    if not _changed(new, old):
        return []
    # upstream: pkg/registry/core/replicationcontroller/strategy.go#WarningsOnUpdate (looks at the old template)
    seen = old if old is not None and new.get("kind") == "ReplicationController" else new
    return _name(new, old) + pods.of_template(seen["spec"].get("template"), "spec.template")


def of_daemon_set(new: Tree, old: Tree | None) -> list[str]:
    """A DaemonSet; an update only if its template changes."""
    template = new["spec"].get("template")
    if old is not None and template == old["spec"].get("template"):
        return []
    return pods.of_template(template, "spec.template")


def of_stateful_set(new: Tree, old: Tree | None) -> list[str]:
    """A StatefulSet."""
    spec, found = new["spec"], list[str]()
    if _changed(new, old):
        found += pods.of_template(spec.get("template"), "spec.template")
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        path = f"spec.volumeClaimTemplates[{index}]"
        found += storage.of_claim_spec(claim.get("spec") or {}, path if old is None else f"{path}.Spec")
    return [*found, _HISTORY] if (spec.get("revisionHistoryLimit") or 0) < 0 else found


def of_pod_template(new: Tree, old: Tree | None) -> list[str]:
    """A PodTemplate."""
    return pods.of_template(new.get("template"), "template") if _changed(new, old) else []


def of_job(new: Tree, old: Tree | None) -> list[str]:
    """A Job."""
    return _name(new, old) + _job_spec(new["spec"], "spec") if _changed(new, old) else []


def of_cron_job(new: Tree, old: Tree | None) -> list[str]:
    """A CronJob."""
    spec, found = new["spec"], list[str]()
    if _changed(new, old):
        job = (spec.get("jobTemplate") or {}).get("spec") or {}
        found += _name(new, old) + _job_spec(job, "spec.jobTemplate.spec")
    return [*found, _ZONE] if old is not None and "TZ" in spec.get("schedule", "") else found


def _job_spec(spec: Tree, path: str) -> list[str]:
    found: list[str] = []
    completions, parallelism = spec.get("completions") or 0, spec.get("parallelism") or 0
    if spec.get("completionMode") == "Indexed" and completions > _SOFT_COMPLETIONS and parallelism > _SOFT_PARALLELISM:
        found.append(f"{path}: {_MANY_INDEXES}")
    return found + pods.of_template(spec.get("template"), f"{path}.template")
