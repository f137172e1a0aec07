"""cronjob-controller: creates a Job at each time of a schedule.

Expected flow of a sync: delete Jobs beyond the history limits, remove finished and deleted Jobs from status.active,
decide whether a time is due, create its Job (with concurrencyPolicy Replace, after deleting the active ones), write the
status once, and requeue the key for the next time. A Job's name is derived from its time, so that a repeated sync finds
the Job.

upstream: pkg/controller/cronjob/cronjob_controllerv2.go
"""

import logging
from collections.abc import Iterable
from datetime import datetime, tzinfo
from functools import cached_property

from msgspec.structs import replace

from kcm_cli.api.batch import CRON_JOBS, JOBS, CronJob, CronJobStatus, Job
from kcm_cli.api.core import ObjectReference
from kcm_cli.component.logs import V2
from kcm_cli.controllers.cronjob.config import CronJobConfig
from kcm_cli.controllers.cronjob.local_zone import local_zone
from kcm_cli.controllers.cronjob.metrics import CronJobMetrics
from kcm_cli.controllers.cronjob.plan import REPLACE, plan, status
from kcm_cli.controllers.cronjob.plan.jobs import job_for, job_name, superfluous
from kcm_cli.controllers.cronjob.plan.schedule import schedule_text, until_next_s
from kcm_cli.controllers.cronjob.plan.status import Snapshot, missing, started, unlisted, without
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import After, Controller, Keys, Queue, Watch, own_key, starting
from kcm_cli.engine.dependents import living_owner
from kcm_cli.engine.worker import unhandled
from kcm_cli.engine.writes import tell
from kcm_cli.machinery.cron import parse
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.kref import KRef, kobj
from kcm_cli.machinery.meta import controller_of
from kcm_cli.machinery.times import format_time, parse_time
from kcm_cli.planning.actions import Delete, Mode, Notice, Outcome, Stage, Update, ref_to
from kcm_cli.planning.jobs import is_finished
from kcm_cli.planning.status import status_changes
from kcm_cli.rest.errors import AlreadyExists, Conflict, namespace_terminating
from kcm_cli.rest.transport import RequestError
from kcm_cli.runtime.store import CONTROLLER_UID, by_controller, controlled_by

log = logging.getLogger(__name__)

BACKGROUND = "Background"


class CronJobController:
    """Reads a CronJob with its Jobs, plans, executes the plan, and writes the status."""

    def __init__(self, context: ControllerContext) -> None:
        self._clock = context.clock
        self._client = context.client
        self._recorder = context.recorder
        self._executor = context.executor()
        (self._queue,) = context.queues
        self._metrics = CronJobMetrics(context.metrics)
        self._jobs = context.cache(JOBS)
        self._cron_jobs = context.cache(CRON_JOBS)
        self._jobs.store.add_index(CONTROLLER_UID, by_controller)

    @cached_property
    def _local(self) -> tzinfo:
        """The machine's time zone. Where there is no CronJob, it is not read."""
        return local_zone()

    async def sync(self, key: str) -> None:
        cron_job = self._cron_jobs.store.get(key)
        if cron_job is None:
            return
        found = controlled_by(self._jobs.store, cron_job.namespace, cron_job.uid)
        jobs = tuple(sorted(found, key=lambda job: job.name))
        finished = [(job.name, job.uid) for job in superfluous(cron_job, jobs)]
        deleted = await self._delete(cron_job, finished, "beyond the history limit")
        new = _without_deleted(cron_job.status, deleted)
        snapshot = await self._read(cron_job, jobs)
        new, notices = status(snapshot, new)
        planned = plan(snapshot, new, self._clock.now())
        if planned.again_s is not None:
            self._queue.add_after(key, planned.again_s)  # also if a write fails: its retry may come later
        for remark in planned.remarks:
            tell(remark)
        for notice in (*notices, *planned.notices):
            self._recorder.emit(notice)
        error: Exception | None = None
        if planned.start is not None:
            new, error = await self._start(cron_job, new, planned.start)
        if new != cron_job.status:
            changes = status_changes(new)
            try:
                await writes.send(self._client, Update(CRON_JOBS, cron_job, changes, "status"))
            except RequestError as refused:
                version = cron_job.metadata.resource_version
                fields = {"cronjob": kobj(cron_job), "resourceVersion": version, "err": str(refused)}
                log.log(V2, "Unable to update status for cronjob", extra={"fields": fields})
                raise
        if error is not None:
            more = {"cronjob": kobj(cron_job), "err": str(error)}
            log.log(V2, "Error reconciling cronjob", extra={"fields": more})
            raise error

    async def _read(self, cron_job: CronJob, jobs: tuple[Job, ...]) -> Snapshot:
        """The CronJob and its Jobs. Where cache and status disagree about a Job, the API server is asked."""
        snapshot = Snapshot(cron_job=cron_job, jobs=jobs, local=self._local)
        known: frozenset[str] = frozenset()
        if unlisted(snapshot):
            current = await self._client.get(CRON_JOBS, cron_job.namespace, cron_job.name)
            known = frozenset(entry.uid for entry in current.status.active)
        deleted = set()
        for entry in missing(snapshot):
            if not (entry.namespace and entry.name):
                deleted.add(entry.uid)  # upstream fails on such an entry in each sync
            else:
                job = await self._client.find(JOBS, entry.namespace, entry.name)
                if job is None or not _stands_for(job, entry, cron_job):
                    deleted.add(entry.uid)
        return replace(snapshot, known=known, deleted=frozenset(deleted))

    async def _start(
        self, cron_job: CronJob, current: CronJobStatus, time: datetime
    ) -> tuple[CronJobStatus, Exception | None]:
        """Create the Job of this time. Returns the status as far as that worked, and the error."""
        if cron_job.spec.concurrency_policy == REPLACE:
            active = [(entry.name, self._uid_of(cron_job, entry)) for entry in current.active]
            outcome = await self._delete(cron_job, active, "replaced by the next run")
            current = _without_deleted(current, outcome)
            replaced: set[str] = set()
            for failed in outcome.failed:
                if not isinstance(failed.error, Conflict):
                    return without(current, replaced), failed.error
                if isinstance(failed.action, Delete):  # another client's Job has the name: it is kept
                    replaced.add(failed.action.uid)
            current = without(current, replaced)
        ref = ref_to(CRON_JOBS, cron_job)
        try:
            reason = f"scheduled for {format_time(time)}"
            job = await self._client.create(JOBS, cron_job.namespace, job_for(cron_job, time), reason=reason)
        except AlreadyExists:
            fields = {"cronjob": kobj(cron_job), "job": KRef(job_name(cron_job, time), cron_job.namespace)}
            log.info("Job already exists", extra={"fields": fields})
            try:
                return await self._found(cron_job, current, time), None
            except RequestError as error:
                return current, error
        except RequestError as error:
            if not namespace_terminating(error):
                self._recorder.emit(Notice(ref, "Warning", "FailedCreate", f"Error creating job: {error}"))
            return current, error
        created = job.metadata.creation_timestamp
        if created is not None:
            self._metrics.created((parse_time(created) - time).total_seconds())
        self._recorder.emit(Notice(ref, "Normal", "SuccessfulCreate", f"Created job {job.name}"))
        return started(current, job, time), None

    def _uid_of(self, cron_job: CronJob, entry: ObjectReference) -> str:
        """The uid of an active Job, also where it was recreated under its name."""
        job = self._jobs.store.get(f"{cron_job.namespace}/{entry.name}")
        ref = controller_of(job) if job is not None else None
        return job.uid if job is not None and ref is not None and ref.uid == cron_job.uid else entry.uid

    async def _found(self, cron_job: CronJob, current: CronJobStatus, time: datetime) -> CronJobStatus:
        """The status after AlreadyExists. A Job of this CronJob was created by a sync that could not write its
        status."""
        job = await self._client.get(JOBS, cron_job.namespace, job_name(cron_job, time))
        ref = controller_of(job)
        if ref is None or ref.uid != cron_job.uid or any(entry.uid == job.uid for entry in current.active):
            return current
        return started(current, job, time)

    async def _delete(self, cron_job: CronJob, jobs: Iterable[tuple[str, str]], reason: str) -> Outcome:
        """Delete Jobs, given as (name, uid), with their pods."""
        ref = ref_to(CRON_JOBS, cron_job)
        deletions = tuple(
            Delete(
                JOBS,
                cron_job.namespace,
                name,
                uid=uid,
                propagation=BACKGROUND,
                done=Notice(ref, "Normal", "SuccessfulDelete", f"Deleted job {name}"),
                failed=Notice(ref, "Warning", "FailedDelete", "Deleted job: {error}"),
                reason=reason,
            )
            for name, uid in jobs
        )
        outcome = await self._executor.stage(Stage(deletions, Mode.SEQUENTIAL, tolerates=len(deletions)))
        for failed in outcome.failed:
            if isinstance(failed.action, Delete):
                job = KRef(failed.action.name, failed.action.namespace)
                fields = {"job": job, "cronjob": kobj(cron_job), "err": str(failed.error)}
                log.error("Error deleting job from cronjob", extra={"fields": fields})
        return outcome

    # -- events

    def updated(self, old: CronJob, new: CronJob) -> Keys:
        """A new schedule is synced at its next time; any other change at once."""
        if (old.spec.schedule, old.spec.time_zone) == (new.spec.schedule, new.spec.time_zone):
            return (new.key,)
        try:
            schedule = parse(schedule_text(new))
        except FormatError as error:
            fields = {"cronjob": kobj(new), "schedule": new.spec.schedule, "err": str(error)}
            log.log(V2, "Unparseable schedule for cronjob", extra={"fields": fields})
            text = f"unparseable schedule for cronjob: {new.spec.schedule}"
            self._recorder.emit(Notice(ref_to(CRON_JOBS, new), "Warning", "UnParseableCronJobSchedule", text))
            return ()
        last = new.status.last_schedule_time
        return (After(new.key, until_next_s(new, schedule, self._clock.now(), last=last, local=self._local)),)

    def owner_of(self, job: Job) -> Keys:
        """The CronJob that controls a Job."""
        cron_job = living_owner(CRON_JOBS.kind, self._cron_jobs.store, job)
        return () if cron_job is None else (cron_job.key,)

    def owners_of(self, old: Job, new: Job) -> Keys:
        """The CronJob that controls a Job, and the one that controlled it before."""
        moved = controller_of(old) != controller_of(new)
        return (*self.owner_of(old), *self.owner_of(new)) if moved else self.owner_of(new)


def _stands_for(job: Job, entry: ObjectReference, cron_job: CronJob) -> bool:
    """Whether a Job is that of an entry in status.active, or runs in its stead: one of this CronJob, created again
    under its name. One that the CronJob no longer controls counts until it has ended."""
    ref = controller_of(job)
    controlled = ref is not None and ref.uid == cron_job.uid
    if job.uid == entry.uid:
        return controlled or not is_finished(job)
    return controlled and not is_finished(job)


def _without_deleted(status: CronJobStatus, outcome: Outcome) -> CronJobStatus:
    return without(status, {done.action.uid for done in outcome.done if isinstance(done.action, Delete)})


CONTROLLER = Controller(
    CronJobController,
    Queue(
        "cronjob",
        Watch(CRON_JOBS, own_key, updated=CronJobController.updated),
        watches=(Watch(JOBS, CronJobController.owner_of, updated=CronJobController.owners_of),),
        sync=CronJobController.sync,
        failures=unhandled("error syncing CronJobController {key}, requeuing: {error}"),
        workers=CronJobConfig,
        writes=(JOBS, CRON_JOBS),
    ),
    announces=starting("cronjob controller v2"),
)
