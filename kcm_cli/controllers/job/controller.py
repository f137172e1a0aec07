"""job-controller: runs pods until enough of them have succeeded, or too many have failed.

Expected flow of a sync: claim the pods, plan, delete or create pods, write the uids of ended pods to the status, remove
the finalizers of those pods, write the counters. Each step is safe to repeat: a pod is counted once, when its finalizer
is gone.

upstream: pkg/controller/job/job_controller.go
"""

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from kcm_cli.api.batch import JOBS, Job, JobStatus, template_of
from kcm_cli.api.core import PODS, Pod
from kcm_cli.api.scheduling import POD_GROUPS, WORKLOADS
from kcm_cli.component.logs import V2
from kcm_cli.controllers.job.backoff import FRESH, Backoff
from kcm_cli.controllers.job.config import JobConfig
from kcm_cli.controllers.job.metrics import JobMetrics
from kcm_cli.controllers.job.plan import (
    Management,
    SyncAction,
    Tracking,
    counted,
    finished,
    plan,
    remove_finalizer,
    spec,
    status,
    with_uncounted,
)
from kcm_cli.controllers.job.plan.pods import JobPod, has_finalizer, job_pods_of
from kcm_cli.controllers.job.plan.spec import Features
from kcm_cli.controllers.job.plan.state import Snapshot
from kcm_cli.controllers.job.pod_groups import PodGroups
from kcm_cli.controllers.job.watches import Orphans, PodWatch
from kcm_cli.engine.claiming import RefManager
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import After, Controller, Keys, Queue, Watch, gate, starting
from kcm_cli.engine.own_writes import CREATE
from kcm_cli.engine.worker import unhandled
from kcm_cli.machinery.durations import format_duration
from kcm_cli.machinery.kref import KRef, kobj
from kcm_cli.machinery.labels import from_label_selector
from kcm_cli.machinery.meta import controller_of
from kcm_cli.planning.actions import Create, Delete, Expect, Failed, Mode, Notice, Outcome, Patch, Stage, edited, ref_to
from kcm_cli.planning.jobs import COMPLETE, is_finished
from kcm_cli.planning.pod_template import UnselectedTemplate, check_selected, labels_of
from kcm_cli.planning.status import status_changes
from kcm_cli.rest.errors import NotFound, namespace_terminating
from kcm_cli.rest.transport import RequestError
from kcm_cli.runtime.store import CONTROLLER_UID, by_controller, claimable
from kcm_cli.runtime.turns import Turns
from kcm_cli.runtime.workqueue import RetryLimiter

log = logging.getLogger(__name__)

_UNLIMITED = 1_000_000
_PART = 500
"""Pods that are classified between two looks at the clock, about 1 ms."""


def _limiter(context: ControllerContext) -> RetryLimiter:
    """Failed keys are retried with an exponential backoff of 1 s to 1 min each, without an overall limit."""
    return RetryLimiter(
        base_s=spec.API_BACKOFF_S, maximum_s=spec.MAX_API_BACKOFF_S, rate=float(_UNLIMITED), burst=_UNLIMITED
    )


_SKIPPED = "Slow-start failure. Skipping creating pods, decrementing expectations"


class JobController:
    """Reads a Job with its pods, plans, executes the plan, and writes the status."""

    def __init__(self, context: ControllerContext) -> None:
        self._clock = context.clock
        self._client = context.client
        self._recorder = context.recorder
        enabled = context.gates.enabled
        self._features = Features(
            forgets_start=enabled("MutableSchedulingDirectivesForSuspendedJobs"),
            managed_by=enabled("JobManagedBy"),
            replacement=enabled("JobPodReplacementPolicy"),
        )
        self._metrics = JobMetrics(context.metrics)
        self._expectations = context.expectations
        self._executor = context.executor()
        self._refs = RefManager(self._executor, JOBS, PODS, (spec.TRACKING_FINALIZER,))
        self._backoffs: dict[str, tuple[str, Backoff]] = {}
        """By key, with the uid of the Job: one that is recreated under its name starts afresh."""
        self._queue, orphan_queue = context.queues
        self._jobs = context.cache(JOBS)
        self._pods = context.cache(PODS)
        self._pod_groups = PodGroups(context) if enabled("WorkloadWithJob") else None
        self._pods.store.add_index(CONTROLLER_UID, by_controller)
        self.orphans = Orphans(orphan_queue, context.executor(), self._jobs.store, self._pods.store, self._features)
        self.pods = PodWatch(
            self._jobs.store,
            expectations=self._expectations,
            orphans=self.orphans,
            metrics=self._metrics,
        )

    async def sync(self, key: str) -> None:
        job = self._jobs.store.get(key)
        if job is None:
            self._forget(key)
            return
        manager = spec.other_manager(job, self._features)
        if manager is not None:
            fields = {"key": key, "uid": job.uid, "controllerName": manager}
            log.log(V2, "Skip syncing the job as it is managed by an external controller", extra={"fields": fields})
        elif is_finished(job):
            self._backoffs.pop(key, None)
        elif not spec.has_known_mode(job):
            self._emit(job, "Warning", "UnknownCompletionMode", "Skipped Job sync because completion mode is unknown")
        else:
            await self._sync(job)

    async def _sync(self, job: Job) -> None:
        started, action, failed = self._clock.monotonic(), SyncAction.RECONCILING, True
        try:
            snapshot, unread = await self._read(job)
            now = self._clock.now()
            planned = plan(snapshot, now)
            action = planned.action
            if planned.again_s is not None:
                self._queue.add_after(job.key, planned.again_s)  # also if a write fails: its retry may come later
            if planned.state.deadline_s is not None and planned.ending is None:
                fields = {"key": job.key, "nextSyncIn": format_duration(planned.state.deadline_s)}
                text = "Job has activeDeadlineSeconds configuration. Will sync this job again"
                log.log(V2, text, extra={"fields": fields})
            outcome = await self._carry_out(job, planned)
            if planned.creations:
                created = sum(isinstance(done.action, Create) for done in outcome.done)
                failed_creations = sum(not namespace_terminating(failure.error) for failure in outcome.failed)
                self._metrics.created(planned.state, created, failed_creations)
            await Turns.of_loop().pause()
            await self._record(planned, status(planned, outcome, now), now)
            _raise_first(outcome)
            if unread is not None:
                raise unread
            failed = False
        finally:
            self._metrics.synced(job, action, self._clock.monotonic() - started, failed=failed)

    # -- reading

    async def _read(self, job: Job) -> tuple[Snapshot, Exception | None]:
        """The snapshot, and the first error. After an error ended pods are counted, but none are created or deleted."""
        selector = from_label_selector(job.spec.selector)
        satisfied = self._expectations.satisfied(job.key, self._clock.monotonic(), job.uid)
        claimed = await self._refs.claim(job, selector, claimable(self._pods.store, job))
        pods, error = claimed.members, claimed.error
        group = None
        if self._pod_groups is not None and error is None:
            try:
                group = await self._pod_groups.group_of(job, pods)
            except RequestError as failure:
                error = failure
        job_pods = await self._classified(job, pods)
        snapshot = Snapshot(
            job=job,
            pods=job_pods,
            satisfied=satisfied and error is None,
            backoff=self._backoff_of(job),
            features=self._features,
            pod_group=group,
        )
        return snapshot, error

    async def _classified(self, job: Job, pods: Sequence[Pod]) -> tuple[JobPod, ...]:
        """The pods, of which a Job may have tens of thousands, in as many turns as that takes."""
        turns = Turns.of_loop()
        classified: list[JobPod] = []
        for start in range(0, len(pods), _PART):
            part = map(_adopted, pods[start : start + _PART])
            classified += job_pods_of(job, part, self._features)
            await turns.pause()
        return tuple(classified)

    # -- acting

    async def _carry_out(self, job: Job, planned: Management) -> Outcome:
        """Create pods; or remove the finalizers of surplus pods and delete those that lost it."""
        key = job.key
        if planned.creations:
            try:
                _check_template(job)
            except UnselectedTemplate as error:
                return Outcome(failed=(Failed(planned.creations[0], error),), skipped=planned.creations[1:])
            expect = Expect(key, job.uid, creations=len(planned.creations))
            outcome = await self._executor.stage(Stage(planned.creations, Mode.SLOW_START, expect))
            for _ in outcome.failed:
                log.log(V2, "Failed creation, decrementing expectations", extra={"fields": {"job": kobj(job)}})
            if outcome.skipped:
                fields = {"skippedCount": len(outcome.skipped), "job": kobj(job)}
                log.log(V2, _SKIPPED, extra={"fields": fields})
            return outcome
        if not planned.deletions:
            return Outcome()
        failures: tuple[Failed, ...] = ()
        if planned.finalizers:
            failures = _without_not_found(await self._executor.stage(Stage(planned.finalizers)))
        kept = _names(failures)
        deletions = tuple(deletion for deletion in planned.deletions if deletion.name not in kept)
        expected = tuple(f"{deletion.namespace}/{deletion.name}" for deletion in deletions)
        stage = Stage(deletions, Mode.PARALLEL, Expect(key, job.uid, deletions=expected) if planned.managed else None)
        outcome = await self._executor.stage(stage)
        for failure in outcome.failed:
            if isinstance(failure.action, Delete):
                pod = KRef(failure.action.name, failure.action.namespace)
                more = {"job": kobj(job), "pod": pod, "err": str(failure.error)}
                log.log(V2, "Failed to delete Pod", extra={"fields": more})
        return outcome.merge(Outcome(failed=failures))

    async def _record(self, planned: Management, tracking: Tracking, now: datetime) -> None:
        """Write the uids of ended pods to the status, remove the finalizers of these pods, and write the counters."""
        job = planned.state.job
        if tracking.status != with_uncounted(job.status):
            job = await self._store(job, tracking.status)
            self._remember(job, planned.state.backoff)
            for notice in tracking.notices:
                self._recorder.emit(notice)
        for action, times in tracking.policy_actions.items():
            self._metrics.policy_applied(action, times)
        waiting, error = await self._release(tracking)
        new = counted(job.status, waiting)
        final = None if error is not None else finished(tracking, new, now)
        if final is not None or new is not job.status:
            job = await self._store(job, final or new)
        if error is not None:
            raise error
        if final is not None:
            self._job_finished(job, tracking)

    async def _release(self, tracking: Tracking) -> tuple[frozenset[str], Exception | None]:
        """Remove the finalizers of counted pods. Returns the uids of pods that still have one, and the first error."""
        pods = tracking.release
        if not pods:
            return tracking.waiting, None
        outcome = await self._executor.stage(Stage(tuple(remove_finalizer(pod) for pod in pods)))
        failures = _without_not_found(outcome)
        kept = _names(failures)
        released = {pod.uid for pod in pods if pod.name not in kept}
        return tracking.waiting - released, failures[0].error if failures else None

    async def _store(self, job: Job, new: JobStatus) -> Job:
        stored = await self._client.update(
            JOBS,
            job.namespace,
            job.name,
            edited(job, status_changes(new)),
            subresource="status",
        )
        self._metrics.status_written(job, job.status, stored.status)
        return stored

    def _backoff_of(self, job: Job) -> Backoff:
        uid, backoff = self._backoffs.get(job.key, ("", FRESH))
        return backoff if uid == job.uid else FRESH

    def _remember(self, job: Job, backoff: Backoff) -> None:
        if backoff == FRESH:
            self._backoffs.pop(job.key, None)
        else:
            self._backoffs[job.key] = job.uid, backoff

    def _job_finished(self, job: Job, tracking: Tracking) -> None:
        final = tracking.final
        if final is None:
            return
        if final.type == COMPLETE:
            completions = job.spec.completions
            if completions is not None and job.status.succeeded > completions:
                text = "Too many succeeded pods running after completion count reached"
                self._emit(job, "Warning", "TooManySucceededPods", text)
            self._emit(job, "Normal", "Completed", "Job completed")
        else:
            self._emit(job, "Warning", final.reason, final.message)
        self._metrics.job_finished(job, final.type, final.reason)

    def _emit(self, job: Job, type_: str, reason: str, message: str) -> None:
        self._recorder.emit(Notice(ref_to(JOBS, job), type_, reason, message))

    # -- events

    def job_added(self, job: Job) -> Keys:
        """A Job that was created suspended is synced after a delay, so that its scheduling directives can be set
        first."""
        manager = spec.other_manager(job, self._features)
        if manager is not None:
            self._metrics.managed_by(manager)
        suspended = job.spec.suspend and job.status == JobStatus()
        return (After(job.key, spec.SUSPENDED_GRACE_S) if suspended else job.key,)

    def job_updated(self, old: Job, new: Job) -> Keys:
        """A change of the status alone is synced after a delay, like changes of pods."""
        if is_finished(new):
            return ()
        same = old.metadata.generation == new.metadata.generation and old.uid == new.uid
        return (After(new.key, spec.BATCH_PERIOD_S) if same else new.key,)

    def job_deleted(self, job: Job) -> Keys:
        """Forget the Job, and queue its key: a sync that is under way may store something for it again."""
        self._forget(job.key)
        return (job.key,)

    def _forget(self, key: str) -> None:
        self._expectations.forget(key)
        self._backoffs.pop(key, None)


def _adopted(pod: Pod) -> Pod:
    """The pod with the tracking finalizer if it was just adopted, since the cache does not show the finalizer yet."""
    if controller_of(pod) is not None or has_finalizer(pod):
        return pod
    finalizers = (*pod.metadata.finalizers, spec.TRACKING_FINALIZER)
    metadata = msgspec.structs.replace(pod.metadata, finalizers=finalizers)
    return msgspec.structs.replace(pod, metadata=metadata)


def _without_not_found(outcome: Outcome) -> tuple[Failed, ...]:
    """The failures except NotFound."""
    return tuple(failure for failure in outcome.failed if not isinstance(failure.error, NotFound))


def _names(failures: Iterable[Failed]) -> set[str]:
    """The names of the objects whose patches failed."""
    return {failure.action.name for failure in failures if isinstance(failure.action, Patch)}


def _check_template(job: Job) -> None:
    """Raises UnselectedTemplate where the selector does not match the template's labels."""
    template = template_of(job)
    if not labels_of(template) and not spec.is_indexed(job):
        raise UnselectedTemplate("no labels")  # as upstream
    check_selected(template, from_label_selector(job.spec.selector))


def _raise_first(outcome: Outcome) -> None:
    """Raise the first error, to have the key retried. Pods that a terminating namespace refused need no retry."""
    for failure in outcome.failed:
        if not namespace_terminating(failure.error):
            raise failure.error


CONTROLLER = Controller(
    JobController,
    (
        Queue(
            "job",
            Watch(
                JOBS,
                added=JobController.job_added,
                updated=JobController.job_updated,
                deleted=JobController.job_deleted,
            ),
            watches=(
                Watch(
                    PODS,
                    added=PodWatch.added,
                    updated=PodWatch.updated,
                    deleted=PodWatch.deleted,
                ),
            ),
            sync=JobController.sync,
            failures=unhandled("syncing job: {error}"),
            writes=(JOBS, PODS, WORKLOADS, POD_GROUPS),
            stale_gate="StaleControllerConsistencyJob",
            without_gate=frozenset((CREATE,)),
            workers=JobConfig,
            limiter=_limiter,
        ),
        Queue(
            "job_orphan_pod",
            watches=(Watch(JOBS, updated=Orphans.pods_of_finished, deleted=Orphans.pods_of),),
            sync=Orphans.sync,
            failures=unhandled("Error syncing orphan pod: {error}"),
            workers=JobConfig,
            limiter=_limiter,
        ),
    ),
    reads=(Watch(WORKLOADS, when=gate("WorkloadWithJob")), Watch(POD_GROUPS, when=gate("WorkloadWithJob"))),
    announces=starting("job controller"),
)
