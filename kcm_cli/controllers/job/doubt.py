"""Creations whose answer never came: the pod may be there and on its way to the cache, or not.

Expectations cannot tell: they would wait minutes for a pod that was never created. Another try without looking would
run a piece of work twice, which for a Job is more than a surplus pod. So the Job's pods are listed, and no pod is
planned before the cache shows all of them. Costs one list after a broken connection, nothing otherwise.

upstream: none; there a lost answer can make a Job run more pods than it has completions.
"""

from kcm_cli.api.batch import Job
from kcm_cli.api.core import PODS, Pod
from kcm_cli.engine.door import Door
from kcm_cli.machinery.labels import Selector
from kcm_cli.machinery.meta import Object
from kcm_cli.planning.actions import Create, Outcome
from kcm_cli.rest.listing import read_page
from kcm_cli.rest.reading import read
from kcm_cli.rest.transport import TransportError, Unreachable
from kcm_cli.runtime.store import Store


class Doubt:
    """The Jobs, by key and uid, of which it is not known how many pods were created."""

    def __init__(self, client: Door, pods: Store[Pod]) -> None:
        self._client = client
        self._pods = pods
        self._jobs: dict[str, str] = {}

    def note(self, job: Job, outcome: Outcome) -> None:
        """Look for creations that may have taken effect."""
        for failure in outcome.failed:
            unknown = isinstance(failure.error, TransportError) and not isinstance(failure.error, Unreachable)
            if unknown and isinstance(failure.action, Create):
                self._jobs[job.key] = job.uid

    def pending(self, job: Job) -> bool:
        """Whether this Job has to be looked at again."""
        return self._jobs.get(job.key) == job.uid

    async def resolved(self, job: Job, selector: Selector) -> bool:
        """Whether the cache shows all pods that were created. Raises what a request raises."""
        if not self.pending(job):
            return True
        body = await self._client.list_page(PODS, job.namespace, label_selector=str(selector), metadata_only=True)
        for item in read_page(body).items:
            if self._pods.get(read(item, Object).key) is None:
                return False
        self._jobs.pop(job.key, None)
        return True

    def forget(self, key: str) -> None:
        """The Job is over or gone."""
        self._jobs.pop(key, None)
