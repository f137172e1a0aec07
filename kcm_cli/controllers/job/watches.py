"""Maps changes of pods to the keys of their Jobs, and queues pods that no Job counts.

``engine.dependents`` is not used, because every change of a pod also updates the metric of finalizers, and because pods
of finished Jobs go to a queue of their own (``Orphans``): no sync of a Job removes their tracking finalizer. Keys are
queued a second later, so that many changes of a Job's pods lead to one sync.

upstream: pkg/controller/job/job_controller.go#addPod, updatePod, deletePod, syncOrphanPod
"""

from kcm_cli.api.batch import JOBS, Job
from kcm_cli.api.core import Pod
from kcm_cli.controllers.job.metrics import JobMetrics
from kcm_cli.controllers.job.plan import give_up, spec
from kcm_cli.controllers.job.plan.pods import has_finalizer
from kcm_cli.controllers.job.plan.spec import Features
from kcm_cli.engine.controller import After, Keys
from kcm_cli.engine.dependents import living_owner, selector_of
from kcm_cli.engine.execute import Executor
from kcm_cli.machinery.meta import controller_of
from kcm_cli.planning.actions import Stage
from kcm_cli.planning.jobs import is_finished
from kcm_cli.planning.pods import is_terminal
from kcm_cli.rest.errors import NotFound
from kcm_cli.runtime.expectations import Expectations
from kcm_cli.runtime.label_indexes import SelectorIndex
from kcm_cli.runtime.store import CONTROLLER_UID, Store
from kcm_cli.runtime.workqueue import WorkQueue

_OF_JOB = "job:"
_CATCH_UP_S = 1.0


class Orphans:
    """The queue of pods that keep the finalizer without a Job that counts them. upstream: orphanQueue.

    Keys are ``namespace/name`` of a pod, or ``job:uid`` for all pods of a Job.
    """

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
        """The key for all pods of a Job that is finished or deleted."""
        return (_OF_JOB + job.uid,)

    def pods_of_finished(self, old: Job, new: Job) -> Keys:
        """The key for all pods of a finished Job, after a delay in which the cache shows the writes of its last
        sync."""
        return (After(_OF_JOB + new.uid, _CATCH_UP_S),) if is_finished(new) else ()

    async def sync(self, key: str) -> None:
        """Remove the finalizer of a pod, or of all pods of a Job. Raises Conflict for one that has changed: the retry
        looks again whether a Job counts it."""
        if key.startswith(_OF_JOB):
            pods = self._pods.by_index(CONTROLLER_UID, key.removeprefix(_OF_JOB))
        else:
            pod = self._pods.get(key)
            pods = [] if pod is None else [pod]
        patches = tuple(give_up(pod) for pod in pods if has_finalizer(pod) and self._abandoned(pod))
        outcome = await self._executor.stage(Stage(patches))
        for failure in outcome.failed:
            if not isinstance(failure.error, NotFound):
                raise failure.error

    def _abandoned(self, pod: Pod) -> bool:
        """Whether no Job counts this pod: it has no controller, or its Job is deleted or finished."""
        ref = controller_of(pod)
        if ref is None:
            return True
        if ref.kind != JOBS.kind or ref.api_version != JOBS.api_version:
            return False
        job = self._jobs.get(f"{pod.namespace}/{ref.name}")
        if job is None or job.uid != ref.uid:
            return True
        return spec.other_manager(job, self._features) is None and is_finished(job)


class PodWatch:
    """Maps changes of pods to Jobs, and observes expected deletions and finalizers."""

    def __init__(
        self,
        jobs: Store[Job],
        *,
        expectations: Expectations,
        orphans: Orphans,
        metrics: JobMetrics,
    ) -> None:
        self._jobs = jobs
        self._expectations = expectations
        self._orphans = orphans
        self._metrics = metrics
        self._selecting = SelectorIndex.of(jobs, selector_of)

    def added(self, pod: Pod) -> Keys:
        self._metrics.ended_pod(False, _ended_with_finalizer(pod))
        if pod.deleting:
            return self._deleted(pod)
        if controller_of(pod) is None:
            return self._orphan(pod, adoptable=True)
        job = self._job_of(pod)
        if job is None:
            return ()
        self._expectations.creation_observed(job.key)
        return (_later(job),)

    def updated(self, old: Pod, new: Pod) -> Keys:
        self._metrics.ended_pod(_ended_with_finalizer(old), _ended_with_finalizer(new))
        if new.deleting:
            return self._deleted(new)
        before, after = controller_of(old), controller_of(new)
        keys: list[After] = []
        if before != after and before is not None:
            keys += self._changed(self._job_of(old))
        if after is not None:
            return [*keys, *self._changed(self._job_of(new))]
        return [*keys, *self._orphan(new, adoptable=before != after or old.metadata.labels != new.metadata.labels)]

    def deleted(self, pod: Pod) -> Keys:
        self._metrics.ended_pod(_ended_with_finalizer(pod), False)
        return self._deleted(pod)

    def _changed(self, job: Job | None) -> tuple[After, ...]:
        return () if job is None else (_later(job),)

    def _deleted(self, pod: Pod) -> tuple[After, ...]:
        """A pod was deleted, or has a deletion timestamp."""
        job = self._job_of(pod)
        if job is None or is_finished(job):
            if has_finalizer(pod):
                self._orphans.add_pod(pod)
            return ()
        self._expectations.deletion_observed(job.key, pod.key)
        return (_later(job),)

    def _orphan(self, pod: Pod, *, adoptable: bool) -> tuple[After, ...]:
        if has_finalizer(pod):
            self._orphans.add_pod(pod)
        if not adoptable or not pod.labels:
            return ()
        return tuple(_later(job) for job in self._selecting.selecting(pod.namespace, pod.labels))

    def _job_of(self, pod: Pod) -> Job | None:
        return living_owner(JOBS.kind, self._jobs, pod)


def _later(job: Job) -> After:
    return After(job.key, spec.BATCH_PERIOD_S)


def _ended_with_finalizer(pod: Pod) -> bool:
    return is_terminal(pod) and has_finalizer(pod)
