"""Views of the batch group.

Pod and Job templates are opaque: their documents are read from the raw object when a pod or Job is created from them
(``template_of``, ``job_template_of``), and never decoded otherwise.
"""

import msgspec

from kcm_cli.api.core import Condition, ObjectReference
from kcm_cli.api.resource import GVR, Resource
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.labels import LabelSelector
from kcm_cli.machinery.meta import Object, View


class OnExitCodes(View, frozen=True, gc=False):
    """PodFailurePolicyOnExitCodesRequirement; no container name means any container."""

    container_name: str | None = None
    operator: str = ""
    values: tuple[int, ...] = ()


class OnPodCondition(View, frozen=True, gc=False):
    """PodFailurePolicyOnPodConditionsPattern."""

    type: str = ""
    status: str = ""


class FailureRule(View, frozen=True, gc=False):
    """PodFailurePolicyRule. An empty list of conditions differs from an absent one."""

    action: str = ""
    on_exit_codes: OnExitCodes | None = None
    on_pod_conditions: tuple[OnPodCondition, ...] | None = None


class FailurePolicy(View, frozen=True, gc=False):
    """PodFailurePolicy."""

    rules: tuple[FailureRule, ...] = ()


class SuccessRule(View, frozen=True, gc=False):
    """SuccessPolicyRule."""

    succeeded_indexes: str | None = None
    succeeded_count: int | None = None


class SuccessPolicy(View, frozen=True, gc=False):
    rules: tuple[SuccessRule, ...] = ()


class JobPodSpec(View, frozen=True, gc=False):
    """The fields of the pod template that affect the Job."""

    restart_policy: str = ""
    scheduling_group: Doc | None = None


class JobPodTemplate(View, frozen=True, gc=False):
    spec: JobPodSpec = msgspec.field(default_factory=JobPodSpec)


class JobSpec(View, frozen=True, gc=False):
    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str | None = None
    active_deadline_seconds: int | None = None
    backoff_limit: int | None = None
    backoff_limit_per_index: int | None = None
    max_failed_indexes: int | None = None
    pod_failure_policy: FailurePolicy | None = None
    success_policy: SuccessPolicy | None = None
    pod_replacement_policy: str | None = None
    managed_by: str | None = None
    suspend: bool | None = None
    ttl_seconds_after_finished: int | None = None
    selector: LabelSelector | None = None
    template: JobPodTemplate = msgspec.field(default_factory=JobPodTemplate)


class Uncounted(View, frozen=True, gc=False):
    """UncountedTerminatedPods: uids of ended pods whose finalizers have not been removed yet."""

    succeeded: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class JobStatus(View, frozen=True, gc=False):
    conditions: tuple[Condition, ...] = ()
    start_time: str | None = None
    completion_time: str | None = None
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int | None = None
    completed_indexes: str = ""
    failed_indexes: str | None = None
    uncounted_terminated_pods: Uncounted | None = None
    ready: int | None = None


class Job(Object, frozen=True, gc=False, kw_only=True):
    spec: JobSpec = msgspec.field(default_factory=JobSpec)
    status: JobStatus = msgspec.field(default_factory=JobStatus)


class CronJobSpec(View, frozen=True, gc=False):
    schedule: str = ""
    time_zone: str | None = None
    starting_deadline_seconds: int | None = None
    concurrency_policy: str = ""
    suspend: bool | None = None
    successful_jobs_history_limit: int | None = None
    failed_jobs_history_limit: int | None = None


class CronJobStatus(View, frozen=True, gc=False):
    active: tuple[ObjectReference, ...] = ()
    last_schedule_time: str | None = None
    last_successful_time: str | None = None


class CronJob(Object, frozen=True, gc=False, kw_only=True):
    spec: CronJobSpec = msgspec.field(default_factory=CronJobSpec)
    status: CronJobStatus = msgspec.field(default_factory=CronJobStatus)


class _Templated(View, frozen=True, gc=False):
    template: Doc = msgspec.field(default_factory=dict)
    job_template: Doc = msgspec.field(default_factory=dict)


class _WithTemplate(View, frozen=True, gc=False):
    spec: _Templated = msgspec.field(default_factory=_Templated)


def template_of(job: Job) -> Doc:
    """The pod template as it was sent. Raises ValueError for a view without its raw document."""
    return _templated(job).template


def job_template_of(cron_job: CronJob) -> Doc:
    """The Job template as it was sent. Raises ValueError for a view without its raw document."""
    return _templated(cron_job).job_template


def _templated(obj: Object) -> _Templated:
    if obj.raw is None:
        raise ValueError(f"{type(obj).__name__} {obj.key} keeps no raw document: it has no template to copy")
    return codec.decode(obj.raw, _WithTemplate).spec


def _batch(plural: str) -> GVR:
    return GVR("batch", "v1", plural)


JOBS = Resource(_batch("jobs"), "Job", Job, keeps_raw=True)
CRON_JOBS = Resource(_batch("cronjobs"), "CronJob", CronJob, keeps_raw=True)
