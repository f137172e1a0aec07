"""ttl-after-finished-controller: deletes finished Jobs after their time to live.

A Job is read from the API server before it is deleted, since its TTL may have been extended. It is deleted in the
foreground.

upstream: pkg/controller/ttlafterfinished
"""

import logging

from kcm_cli.api.batch import JOBS
from kcm_cli.component.metrics import exponential_buckets
from kcm_cli.controllers.ttl_after_finished.config import TTLAfterFinishedConfig
from kcm_cli.controllers.ttl_after_finished.plan import expires, plan
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Queue, Watch, only, starting
from kcm_cli.engine.worker import unhandled
from kcm_cli.machinery.kref import kobj

log = logging.getLogger(__name__)


_IN_THE_FUTURE = (
    "Warning: Found Job finished in the future. This is likely due to time skew in the cluster. Job cleanup will be"
    " deferred."
)


class TTLAfterFinishedController:
    """Keys are finished Jobs with a TTL."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self._late = context.metrics.histogram(
            "ttl_after_finished_controller_job_deletion_duration_seconds",
            "Seconds between the end of a Job's time to live and its deletion.",
            exponential_buckets(0.1, 2, 14),
        ).labels()
        self._jobs = context.cache(JOBS).store

    async def sync(self, key: str) -> float | None:
        job = self._jobs.get(key)
        left_s = None if job is None else plan(job, self._clock.now())
        if job is not None and left_s is not None and left_s > (job.spec.ttl_seconds_after_finished or 0):
            log.info(_IN_THE_FUTURE, extra={"fields": {"job": kobj(job)}})
        if job is None or left_s is None or left_s > 0:
            return left_s
        job = await self._client.find(JOBS, job.namespace, job.name)
        asked = self._clock.now()
        left_s = None if job is None else plan(job, asked)
        if job is None or left_s is None or left_s > 0:
            return left_s
        reason = f"finished, ttlSecondsAfterFinished={job.spec.ttl_seconds_after_finished}"
        await self._client.delete(JOBS, job.namespace, job.name, uid=job.uid, propagation="Foreground", reason=reason)
        self._late.observe((self._clock.now() - asked).total_seconds() - left_s)
        return None


CONTROLLER = Controller(
    TTLAfterFinishedController,
    Queue(
        "ttl_jobs_to_delete",
        Watch(JOBS, changed=only(expires)),
        sync=TTLAfterFinishedController.sync,
        failures=unhandled("error cleaning up Job {key}, will retry: {error}"),
        workers=TTLAfterFinishedConfig,
    ),
    announces=starting("TTL after finished controller"),
)
