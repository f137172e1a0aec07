"""selinux-warning-controller: warns of pods that share a volume with different SELinux labels or policies.

Where labels become mount options, only one of two such pods can have the volume on one node. All pods that have not
ended count, wherever they run.

upstream: pkg/controller/volume/selinuxwarning
"""

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim
from kcm_cli.api.selinux import MOUNTING_PODS, MountedVolume, MountingPod
from kcm_cli.api.storage import CSI_DRIVERS, PERSISTENT_VOLUMES, CsiDriver, PersistentVolume
from kcm_cli.controllers.selinux_warning import plan
from kcm_cli.controllers.selinux_warning.conflicts import Conflict, SharedVolumes
from kcm_cli.controllers.selinux_warning.metrics import ConflictMetrics
from kcm_cli.engine.context import ControllerContext, Runnable
from kcm_cli.planning.actions import Notice, ref_to
from kcm_cli.planning.pod_claims import CLAIM, claims_of
from kcm_cli.runtime.informer import Scope

SOURCE = "selinux_warning"
NOT_ENDED = Scope(field_selector="status.phase!=Succeeded,status.phase!=Failed")


def build(context: ControllerContext) -> Runnable:
    controller = SELinuxWarningController(context)
    return context.worker(controller.queue, controller.sync, count=1, waits_for=controller.informers)


class SELinuxWarningController:
    """Keys are pods."""

    def __init__(self, context: ControllerContext) -> None:
        self._recorder = context.recorder_for(SOURCE)
        self._with_labels = context.gates.enabled("SELinuxMountReadWriteOncePod")
        self._shared = SharedVolumes(ConflictMetrics(context.metrics).changed)
        self._uids: dict[str, str] = {}
        self.queue = context.queue("selinux_warning")
        self._pods = context.informers.get(MOUNTING_PODS, NOT_ENDED)
        self._claims = context.informers.get(PERSISTENT_VOLUME_CLAIMS)
        self._volumes = context.informers.get(PERSISTENT_VOLUMES)
        self._drivers = context.informers.get(CSI_DRIVERS)
        self.informers = (self._pods, self._claims, self._volumes, self._drivers)
        self._pods.store.add_index(CLAIM, claims_of)
        self._pods.listen(on_add=self._pod, on_update=self._pod_updated, on_delete=self._pod)
        self._claims.listen(on_add=self._claim, on_update=self._claim_updated)
        self._volumes.listen(on_add=self._volume, on_update=self._volume_updated)
        self._drivers.listen(on_add=self._driver, on_update=self._driver_updated, on_delete=self._driver)

    async def sync(self, key: str) -> None:
        """Look at all mounts of a pod; what stood in the way of some is raised at the end."""
        pod = self._pods.store.get(key)
        if pod is None or self._uids.get(key, pod.uid) != pod.uid:
            self._shared.remove(key)
            self._uids.pop(key, None)
        if pod is None:
            return
        self._uids[key] = pod.uid
        problem: plan.SeveralLabels | None = None
        labels = plan.labels_of(pod)
        for volume in pod.spec.volumes:
            try:
                if volume.name in labels:
                    self._look_at(pod, volume, labels[volume.name])
            except plan.Unbound:
                continue  # its claim brings the pod back
            except plan.SeveralLabels as error:
                problem = error
        if problem is not None:
            raise problem

    def _look_at(self, pod: MountingPod, volume: MountedVolume, labels: set[str]) -> None:
        found = plan.find(pod, volume, self._claims.store.get, self._volumes.store.get)
        driver = self._drivers.store.get(found.driver) if found is not None else None
        supported = self._with_labels and plan.mounts_with_labels(found, driver)
        try:
            use = plan.use_of(pod, labels if self._with_labels else set(), supported)
        except plan.SeveralLabels:
            text = f'Volume "{volume.name}" is mounted twice with different SELinux labels inside this pod'
            self._recorder.emit(Notice(ref_to(MOUNTING_PODS, pod), "Warning", "MultipleSELinuxLabels", text))
            raise
        if found is not None:
            for conflict in self._shared.add(found.name, found.driver, pod.key, use):
                self._tell(conflict)

    def _tell(self, conflict: Conflict) -> None:
        pod = self._pods.store.get(conflict.pod)
        if pod is not None:
            self._recorder.emit(Notice(ref_to(MOUNTING_PODS, pod), "Normal", conflict.reason, conflict.message()))

    # -- events

    def _pod(self, pod: MountingPod) -> None:
        self.queue.add(pod.key)

    def _pod_updated(self, old: MountingPod, new: MountingPod) -> None:
        if old.spec.ephemeral_containers != new.spec.ephemeral_containers:
            self._pod(new)

    def _claim(self, claim: PersistentVolumeClaim) -> None:
        if claim.spec.volume_name:
            self._users(claim.key)

    def _claim_updated(self, old: PersistentVolumeClaim, new: PersistentVolumeClaim) -> None:
        if (old.spec.volume_name, old.status.phase) != (new.spec.volume_name, new.status.phase):
            self._claim(new)

    def _volume(self, volume: PersistentVolume) -> None:
        ref = volume.spec.claim_ref
        if ref is not None and ref.uid:
            self._users(f"{ref.namespace}/{ref.name}")

    def _volume_updated(self, old: PersistentVolume, new: PersistentVolume) -> None:
        before, after = old.spec.claim_ref, new.spec.claim_ref
        if after is not None and (before is None or before.uid != after.uid):
            self._volume(new)

    def _users(self, claim: str) -> None:
        for pod in self._pods.store.by_index(CLAIM, claim):
            self._pod(pod)

    def _driver(self, driver: CsiDriver) -> None:
        for key in self._shared.pods_of_driver(driver.name):
            self.queue.add(key)

    def _driver_updated(self, old: CsiDriver, new: CsiDriver) -> None:
        if bool(old.spec.se_linux_mount) != bool(new.spec.se_linux_mount):
            self._driver(new)
