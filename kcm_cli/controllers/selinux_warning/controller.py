"""selinux-warning-controller: warns about pods that share a volume with different SELinux labels or change policies.

When labels become mount options, only one of two such pods can use the volume on a node. All pods that have not ended
are compared, on whatever nodes they are.

upstream: pkg/controller/volume/selinuxwarning
"""

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim
from kcm_cli.api.selinux import MOUNTING_PODS, MountedVolume, MountingPod
from kcm_cli.api.storage import CSI_DRIVERS, PERSISTENT_VOLUMES, CsiDriver, PersistentVolume
from kcm_cli.controllers.selinux_warning import plan
from kcm_cli.controllers.selinux_warning.conflicts import ConflictMetrics, SharedVolumes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Keys, Queue, Watch, own_key, starting
from kcm_cli.engine.worker import unhandled
from kcm_cli.planning.actions import Notice, ref_to
from kcm_cli.planning.pod_claims import CLAIM, claims_of
from kcm_cli.runtime.informer import Scope

SOURCE = "selinux_warning"
NOT_ENDED = Scope(field_selector="status.phase!=Succeeded,status.phase!=Failed")


class SELinuxWarningController:
    """Keys are pods."""

    def __init__(self, context: ControllerContext) -> None:
        self._recorder = context.recorder_for(SOURCE)
        self._with_labels = context.gates.enabled("SELinuxMountReadWriteOncePod")
        self._shared = SharedVolumes(ConflictMetrics(context.metrics).changed)
        self._uids: dict[str, str] = {}
        self._pods = context.cache(MOUNTING_PODS)
        self._claims = context.cache(PERSISTENT_VOLUME_CLAIMS)
        self._volumes = context.cache(PERSISTENT_VOLUMES)
        self._drivers = context.cache(CSI_DRIVERS)
        self._pods.store.add_index(CLAIM, claims_of)

    async def sync(self, key: str) -> None:
        """Check all volumes of a pod. An error about some of them is raised at the end."""
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
                    self._check_volume(pod, volume, labels[volume.name])
            except plan.Unbound:
                continue  # the change of its claim queues the pod
            except plan.SeveralLabels as error:
                problem = error
        if problem is not None:
            raise problem

    def _check_volume(self, pod: MountingPod, volume: MountedVolume, labels: set[str]) -> None:
        found = plan.read(pod, volume, self._claims.store.get, self._volumes.store.get)
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
                self._emit(conflict)

    def _emit(self, conflict: plan.Conflict) -> None:
        pod = self._pods.store.get(conflict.pod)
        if pod is not None:
            self._recorder.emit(Notice(ref_to(MOUNTING_PODS, pod), "Normal", conflict.reason, conflict.message()))

    # -- events

    def pod_updated(self, old: MountingPod, new: MountingPod) -> Keys:
        """The pod's key if it got an ephemeral container; no other change matters."""
        return (new.key,) if old.spec.ephemeral_containers != new.spec.ephemeral_containers else ()

    def users_of_claim(self, claim: PersistentVolumeClaim) -> Keys:
        """The keys of the pods that use a bound claim."""
        return self._users(claim.key) if claim.spec.volume_name else ()

    def claim_updated(self, old: PersistentVolumeClaim, new: PersistentVolumeClaim) -> Keys:
        """The keys of the pods that use a claim whose binding may have changed."""
        same = (old.spec.volume_name, old.status.phase) == (new.spec.volume_name, new.status.phase)
        return () if same else self.users_of_claim(new)

    def users_of_volume(self, volume: PersistentVolume) -> Keys:
        """The keys of the pods that use the claim of a bound volume."""
        ref = volume.spec.claim_ref
        return self._users(f"{ref.namespace}/{ref.name}") if ref is not None and ref.uid else ()

    def volume_updated(self, old: PersistentVolume, new: PersistentVolume) -> Keys:
        """The keys of the pods that use a volume whose claim changed."""
        before, after = old.spec.claim_ref, new.spec.claim_ref
        another = after is not None and (before is None or before.uid != after.uid)
        return self.users_of_volume(new) if another else ()

    def pods_of_driver(self, driver: CsiDriver) -> Keys:
        """The keys of the pods that use volumes of a driver."""
        return self._shared.pods_of_driver(driver.name)

    def driver_updated(self, old: CsiDriver, new: CsiDriver) -> Keys:
        """The keys of the pods that use volumes of a driver whose seLinuxMount changed."""
        same = bool(old.spec.se_linux_mount) == bool(new.spec.se_linux_mount)
        return () if same else self.pods_of_driver(new)

    def _users(self, claim: str) -> Keys:
        return [pod.key for pod in self._pods.store.by_index(CLAIM, claim)]


CONTROLLER = Controller(
    SELinuxWarningController,
    Queue(
        "selinux_warning",
        Watch(MOUNTING_PODS, own_key, updated=SELinuxWarningController.pod_updated, scope=NOT_ENDED),
        watches=(
            Watch(
                PERSISTENT_VOLUME_CLAIMS,
                added=SELinuxWarningController.users_of_claim,
                updated=SELinuxWarningController.claim_updated,
            ),
            Watch(
                PERSISTENT_VOLUMES,
                added=SELinuxWarningController.users_of_volume,
                updated=SELinuxWarningController.volume_updated,
            ),
            Watch(
                CSI_DRIVERS, SELinuxWarningController.pods_of_driver, updated=SELinuxWarningController.driver_updated
            ),
        ),
        sync=SELinuxWarningController.sync,
        failures=unhandled("{key} failed with: {error}"),
    ),
    announces=starting("SELinux warning controller"),
)
