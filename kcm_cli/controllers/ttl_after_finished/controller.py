"""ttl-after-finished-controller: deletes Jobs some time after they have finished.

A Job is read afresh before it is deleted: its time to live may have been prolonged. Its dependents go first.

upstream: pkg/controller/ttlafterfinished/ttlafterfinished_controller.go
"""

from datetime import datetime

from kcm_cli.api.batch import JOBS
from kcm_cli.component.metrics import Registry, exponential_buckets
from kcm_cli.controllers.ttl_after_finished.config import TTLAfterFinishedConfig
from kcm_cli.controllers.ttl_after_finished.plan import expires, expiry
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Queue, Watch, only
from kcm_cli.rest.errors import NotFound


class TTLMetrics:
    """ttl_after_finished_controller_*."""

    def __init__(self, registry: Registry) -> None:
        self._late = registry.histogram(
            "ttl_after_finished_controller_job_deletion_duration_seconds",
            "Seconds between the end of a Job's time to live and its deletion.",
            exponential_buckets(0.1, 2, 14),
        ).labels()

    def deleted(self, late_s: float) -> None:
        self._late.observe(late_s)


class TTLAfterFinishedController:
    """Keys are Jobs that are over and have a time to live."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self._metrics = TTLMetrics(context.metrics)
        self._jobs = context.cache(JOBS).store

    async def sync(self, key: str) -> float | None:
        job = self._jobs.get(key)
        moment = None if job is None else expiry(job)
        if job is None or moment is None:
            return None
        left_s = self._left_s(moment)
        if left_s > 0:
            return left_s
        try:
            job = await self._client.get(JOBS, job.namespace, job.name)
        except NotFound:
            return None
        moment = expiry(job)
        if moment is None:
            return None
        left_s = self._left_s(moment)
        if left_s > 0:
            return left_s
        await self._client.delete(JOBS, job.namespace, job.name, uid=job.uid, propagation="Foreground")
        self._metrics.deleted((self._clock.now() - moment).total_seconds())
        return None

    def _left_s(self, moment: datetime) -> float:
        return (moment - self._clock.now()).total_seconds()


CONTROLLER = Controller(
    TTLAfterFinishedController,
    Queue(
        "ttl_jobs_to_delete",
        Watch(JOBS, changed=only(expires)),
        sync=TTLAfterFinishedController.sync,
        workers=lambda context: context.config(TTLAfterFinishedConfig).concurrent_syncs,
    ),
)
