"""ephemeral-volume-controller: creates the claims of pods' ephemeral volumes.

A claim is owned by its pod, and garbage collected with it. A claim that is deleted earlier is created again. Updates of
pods queue nothing, since a pod's volumes never change; neither do deletions.

upstream: pkg/controller/volume/ephemeral
"""

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS, PODS, PersistentVolumeClaim, Pod, Volume
from kcm_cli.controllers.ephemeral_volume import plan
from kcm_cli.controllers.ephemeral_volume.config import EphemeralVolumeConfig
from kcm_cli.controllers.ephemeral_volume.metrics import EphemeralVolumeMetrics
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Keys, Queue, Watch, only, starting
from kcm_cli.engine.worker import unhandled
from kcm_cli.planning.pod_claims import CLAIM, claim_name, claims_of
from kcm_cli.rest.transport import RequestError

AGAIN_S = 60.0
"""When to look again at a pod that has a claim which cannot be decoded."""


class EphemeralVolumeController:
    """Keys are pods with ephemeral volumes."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._recorder = context.recorder_for(plan.SOURCE)
        self._metrics = EphemeralVolumeMetrics(context.metrics)
        self._pods = context.cache(PODS)
        self._claims = context.cache(PERSISTENT_VOLUME_CLAIMS)
        self._pods.store.add_index(CLAIM, claims_of)

    async def sync(self, key: str) -> float | None:
        """Create missing claims. The first error is reported in an Event on the pod, and raised."""
        pod, again_s = self._pods.store.get(key), None
        if pod is None:
            return None
        for volume in plan.ephemeral(pod):
            if self._claims.store.is_unseen(_claim_key(pod, volume)):
                again_s = AGAIN_S
                continue
            try:
                await self._ensure(pod, volume)
            except (plan.NotOwner, RequestError) as error:
                self._recorder.emit(plan.failed(pod, volume, _text(pod, volume, error)))
                raise
        return again_s

    async def _ensure(self, pod: Pod, volume: Volume) -> None:
        claim = self._claims.store.get(_claim_key(pod, volume))
        action = plan.plan(pod, volume, claim)
        if action is None:
            return
        self._metrics.attempts.inc()
        try:
            await writes.send(self._client, action)
        except RequestError:
            self._metrics.failures.inc()
            raise

    def users_of(self, claim: PersistentVolumeClaim) -> Keys:
        """The keys of the pods that a claim may have been created for."""
        return (pod.key for pod in self._pods.store.by_index(CLAIM, claim.key) if plan.ephemeral(pod))


def has_ephemeral_volumes(pod: Pod) -> bool:
    """Whether the pod needs claims for ephemeral volumes."""
    return bool(plan.ephemeral(pod))


def _claim_key(pod: Pod, volume: Volume) -> str:
    return f"{pod.namespace}/{claim_name(pod, volume)}"


def _text(pod: Pod, volume: Volume, error: Exception) -> str:
    return str(error) if isinstance(error, plan.NotOwner) else f"create PVC {claim_name(pod, volume)}: {error}"


CONTROLLER = Controller(
    EphemeralVolumeController,
    Queue(
        "ephemeral_volume",
        Watch(PODS, added=only(has_ephemeral_volumes)),
        watches=(Watch(PERSISTENT_VOLUME_CLAIMS, deleted=EphemeralVolumeController.users_of),),
        sync=EphemeralVolumeController.sync,
        failures=unhandled("{key} failed with: {error}"),
        workers=EphemeralVolumeConfig,
    ),
    announces=starting("ephemeral volume controller"),
)
