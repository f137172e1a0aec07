"""ephemeral-volume-controller: makes the claims of pods' ephemeral volumes.

A claim belongs to its pod and goes with it by garbage collection; one that is deleted before is made again. Pods'
volumes never change, so neither updates of pods nor their deletions are of interest.

upstream: pkg/controller/volume/ephemeral
"""

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS, PODS, PersistentVolumeClaim, Pod, Volume
from kcm_cli.controllers.ephemeral_volume import plan
from kcm_cli.controllers.ephemeral_volume.config import EphemeralVolumeConfig
from kcm_cli.controllers.ephemeral_volume.metrics import EphemeralVolumeMetrics
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext, Runnable
from kcm_cli.planning.pod_claims import CLAIM, claim_name, claims_of
from kcm_cli.rest.transport import RequestError


def build(context: ControllerContext) -> Runnable:
    controller = EphemeralVolumeController(context)
    count = context.config(EphemeralVolumeConfig).concurrent_syncs
    return context.worker(controller.queue, controller.sync, count=count, waits_for=controller.informers)


class EphemeralVolumeController:
    """Keys are pods with ephemeral volumes."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._recorder = context.recorder_for(plan.SOURCE)
        self._metrics = EphemeralVolumeMetrics(context.metrics)
        self.queue = context.queue("ephemeral_volume")
        self._pods = context.informers.get(PODS)
        self._claims = context.informers.get(PERSISTENT_VOLUME_CLAIMS)
        self.informers = (self._pods, self._claims)
        self._pods.store.add_index(CLAIM, claims_of)
        self._pods.listen(on_add=self._pod)
        self._claims.listen(on_delete=self._claim_gone)

    async def sync(self, key: str) -> None:
        """Make what is missing, until something fails: that is said on the pod."""
        pod = self._pods.store.get(key)
        if pod is None:
            return
        for volume in plan.ephemeral(pod):
            try:
                await self._ensure(pod, volume)
            except (plan.NotOwner, RequestError) as error:
                self._recorder.emit(plan.failed(pod, volume, _text(pod, volume, error)))
                raise

    async def _ensure(self, pod: Pod, volume: Volume) -> None:
        claim = self._claims.store.get(f"{pod.namespace}/{claim_name(pod, volume)}")
        action = plan.missing(pod, volume, claim)
        if action is None:
            return
        self._metrics.attempts.inc()
        try:
            await writes.create(self._client, action)
        except RequestError:
            self._metrics.failures.inc()
            raise

    # -- events

    def _pod(self, pod: Pod) -> None:
        if plan.ephemeral(pod):
            self.queue.add(pod.key)

    def _claim_gone(self, claim: PersistentVolumeClaim) -> None:
        for pod in self._pods.store.by_index(CLAIM, claim.key):
            self._pod(pod)


def _text(pod: Pod, volume: Volume, error: Exception) -> str:
    return str(error) if isinstance(error, plan.NotOwner) else f"create PVC {claim_name(pod, volume)}: {error}"
