"""Takes the tracking finalizer from pods that no running Job will ever count, so that they can go.

A worker of its own, because such pods have no Job whose sync would do it.

upstream: pkg/controller/job/job_controller.go#syncOrphanPod
"""

from kcm_cli.api.batch import JOBS, Job
from kcm_cli.api.core import Pod
from kcm_cli.controllers.job.plan import remove_finalizer, spec
from kcm_cli.controllers.job.plan.pods import has_finalizer
from kcm_cli.controllers.job.snapshot import Features
from kcm_cli.engine.controller import Keys
from kcm_cli.engine.execute import Executor
from kcm_cli.machinery.meta import controller_of
from kcm_cli.planning.actions import Stage
from kcm_cli.planning.jobs import is_finished
from kcm_cli.rest.errors import NotFound
from kcm_cli.runtime.store import CONTROLLER_UID, Store
from kcm_cli.runtime.workqueue import WorkQueue

_OF_JOB = "job:"


class Orphans:
    """Keys are ``namespace/name`` of a pod, or ``job:uid`` for all pods of a Job."""

    def __init__(
        self, queue: WorkQueue, executor: Executor, jobs: Store[Job], pods: Store[Pod], features: Features
    ) -> None:
        self._queue = queue
        self._executor = executor
        self._features = features
        self._jobs = jobs
        self._pods = pods

    def add_pod(self, pod: Pod) -> None:
        self._queue.add(pod.key)

    def pods_of(self, job: Job) -> Keys:
        """All pods of a Job that is over or gone."""
        return (_OF_JOB + job.uid,)

    def pods_of_finished(self, old: Job, new: Job) -> Keys:
        """All pods of a Job if it is over."""
        return self.pods_of(new) if is_finished(new) else ()

    async def sync(self, key: str) -> None:
        if key.startswith(_OF_JOB):
            pods = self._pods.by_index(CONTROLLER_UID, key.removeprefix(_OF_JOB))
        else:
            pod = self._pods.get(key)
            pods = [] if pod is None else [pod]
        patches = tuple(remove_finalizer(pod) for pod in pods if has_finalizer(pod) and self._abandoned(pod))
        outcome = await self._executor.stage(Stage(patches))
        for failure in outcome.failed:
            if not isinstance(failure.error, NotFound):
                raise failure.error

    def _abandoned(self, pod: Pod) -> bool:
        """Whether no Job of ours will count this pod any more."""
        ref = controller_of(pod)
        if ref is None:
            return True
        if ref.kind != JOBS.kind or ref.api_version != JOBS.api_version:
            return False
        job = self._jobs.get(f"{pod.namespace}/{ref.name}")
        if job is None or job.uid != ref.uid:
            return True
        return spec.other_manager(job, self._features) is None and is_finished(job)
