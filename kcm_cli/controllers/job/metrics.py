"""The metrics of the Job controller: syncs, finished Jobs, pods and indexes.

upstream: pkg/controller/job/metrics/metrics.go
"""

from kcm_cli.api.batch import Job, JobStatus
from kcm_cli.component.metrics import Registry, Stability, exponential_buckets
from kcm_cli.controllers.job.plan import spec
from kcm_cli.controllers.job.plan.decide import SyncAction
from kcm_cli.controllers.job.plan.indexes import parse
from kcm_cli.controllers.job.plan.state import JobState
from kcm_cli.planning.jobs import COMPLETE

SUCCEEDED = "succeeded"
FAILED = "failed"


class JobMetrics:
    """The metrics job_controller_*."""

    def __init__(self, registry: Registry) -> None:
        self._duration = registry.histogram(
            "job_controller_job_sync_duration_seconds",
            "Duration of syncs of Jobs, in seconds.",
            exponential_buckets(0.004, 2, 15),
            labels=("action", "completion_mode", "result"),
            stability=Stability.STABLE,
        )
        self._syncs = registry.counter(
            "job_controller_job_syncs_total",
            "Number of syncs of Jobs.",
            labels=("action", "completion_mode", "result"),
            stability=Stability.STABLE,
        )
        self._finished = registry.counter(
            "job_controller_jobs_finished_total",
            "Number of finished Jobs, by reason.",
            labels=("completion_mode", "reason", "result"),
            stability=Stability.STABLE,
        )
        self._external = registry.counter(
            "job_controller_jobs_by_external_controller_total",
            "Number of Jobs that another controller manages.",
            labels=("controller_name",),
        )
        self._pods_finished = registry.counter(
            "job_controller_job_pods_finished_total",
            "Number of ended pods that are counted in their Job's status.",
            labels=("completion_mode", "result"),
            stability=Stability.STABLE,
        )
        self._policy = registry.counter(
            "job_controller_pod_failures_handled_by_failure_policy_total",
            "Number of failed pods that matched a rule of the pod failure policy, by action.",
            labels=("action",),
            stability=Stability.BETA,
        )
        self._tracking = registry.counter(
            "job_controller_terminated_pods_tracking_finalizer_total",
            "Number of ended pods with the tracking finalizer that appeared (add) or lost it (delete).",
            labels=("event",),
            stability=Stability.BETA,
        )
        self._indexes = registry.counter(
            "job_controller_job_finished_indexes_total",
            "Number of finished indexes, by whether each index has its own backoff limit.",
            labels=("backoffLimit", "status"),
        )
        self._creations = registry.counter(
            "job_controller_job_pods_creation_total",
            "Number of attempts to create pods of Jobs, by reason (new or replacement) and result.",
            labels=("reason", "status"),
        )

    def synced(self, job: Job, action: SyncAction, duration_s: float, *, failed: bool) -> None:
        labels = (action.value, spec.completion_mode(job), "error" if failed else "success")
        self._duration.labels(*labels).observe(duration_s)
        self._syncs.labels(*labels).inc()

    def managed_by(self, controller: str) -> None:
        self._external.labels(controller).inc()

    def ended_pod(self, was: bool, now: bool) -> None:
        """Count a pod that becomes, or stops being, an ended pod with the tracking finalizer."""
        if was != now:
            self._tracking.labels("add" if now else "delete").inc()

    def job_finished(self, job: Job, type_: str, reason: str) -> None:
        result = SUCCEEDED if type_ == COMPLETE else FAILED
        self._finished.labels(spec.completion_mode(job), reason, result).inc()

    def policy_applied(self, action: str, times: int) -> None:
        self._policy.labels(action).inc(times)

    def created(self, state: JobState, created: int, failed: int) -> None:
        """Count the pods that one sync created, by reason: new pods, or replacements."""
        reason = "new"
        policy, replaces = state.job.spec.pod_replacement_policy, state.snapshot.features.replacement
        if replaces and policy == spec.REPLACE_FAILED and state.failed > 0:
            reason = "recreate_failed"
        elif replaces and (state.failed > 0 or state.terminating > 0):
            reason = "recreate_terminating_or_failed"
        if created:
            self._creations.labels(reason, SUCCEEDED).inc(created)
        if failed:
            self._creations.labels(reason, FAILED).inc(failed)

    def status_written(self, job: Job, before: JobStatus, after: JobStatus) -> None:
        """Count pods and indexes by which a status write raised the counters. Zeros are counted too, so that every
        series is shown."""
        mode = spec.completion_mode(job)
        succeeded = after.succeeded - before.succeeded
        if spec.is_indexed(job):
            succeeded = self._indexes_finished(job, before, after)
        self._pods_finished.labels(mode, SUCCEEDED).inc(max(0, succeeded))
        self._pods_finished.labels(mode, FAILED).inc(max(0, after.failed - before.failed))

    def _indexes_finished(self, job: Job, before: JobStatus, after: JobStatus) -> int:
        """Count finished indexes. Both statuses are read within the present completions, which may have shrunk."""
        completions = spec.completions(job)
        per_index = spec.counts_per_index(job)
        limit = "perIndex" if per_index else "global"
        done = 0
        if after.completed_indexes != before.completed_indexes:
            done = parse(after.completed_indexes, completions).total
            done -= parse(before.completed_indexes, completions).total
        self._indexes.labels(limit, SUCCEEDED).inc(max(0, done))
        if per_index and after.failed_indexes != before.failed_indexes:
            failed = parse(after.failed_indexes or "", completions).total
            failed -= parse(before.failed_indexes or "", completions).total
            if failed > 0:
                self._indexes.labels(limit, FAILED).inc(failed)
        return done
