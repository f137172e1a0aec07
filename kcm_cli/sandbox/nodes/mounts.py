"""Reports the volumes that simulated nodes have mounted (``status.volumesInUse``).

A volume is in use from when its pod is bound to the node until the pod has ended.

upstream: pkg/kubelet/volumemanager, pkg/kubelet/nodestatus/setters.go#VolumesInUse
"""

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS
from kcm_cli.api.storage import CSI_DRIVERS, PERSISTENT_VOLUMES, PersistentVolume
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import Object
from kcm_cli.planning.actions import MERGE
from kcm_cli.planning.pod_claims import CLAIM, claims_of
from kcm_cli.planning.pods import is_terminal
from kcm_cli.planning.volumes.attachable import is_attached_by, may_be_attached, of_pod_volume
from kcm_cli.rest.errors import NotFound
from kcm_cli.runtime.store import NODE, by_node
from kcm_cli.sandbox.means import Means
from kcm_cli.sandbox.nodes.eviction import Alive
from kcm_cli.sandbox.views import NODES, PODS, SimulatedPod
from kcm_cli.sandbox.work import act_for, work_on

WORKERS = 4


class Mounts:
    """Reports the volumes in use. The workqueue's keys are node names."""

    def __init__(self, means: Means, agents: Alive) -> None:
        informers = means.informers
        self._client = means.kubelet
        self._agents = agents
        self._queue = means.queue("mounts")
        self._record = means.record("kubelet", "Node")
        agents.listen(self._queue.add)
        self._nodes = informers.get(NODES)
        self._pods = informers.get(PODS)
        self._claims = informers.get(PERSISTENT_VOLUME_CLAIMS)
        self._volumes = informers.get(PERSISTENT_VOLUMES)
        self._drivers = informers.get(CSI_DRIVERS)
        self._pods.store.add_index(NODE, by_node)
        self._pods.store.add_index(CLAIM, claims_of)
        self._pods.listen(on_add=self._pod, on_update=lambda _, new: self._pod(new), on_delete=self._pod)
        self._claims.listen(on_add=self._claim, on_update=lambda _, new: self._claim(new))
        self._volumes.listen(on_add=self._volume, on_update=lambda _, new: self._volume(new))

    async def run(self) -> None:
        """Run the workers until cancelled."""
        await work_on(self._queue, WORKERS, self._sync, self._record)

    async def _sync(self, name: str) -> None:
        node = self._nodes.store.get(name)
        if node is None or self._agents.alive(name) is None:
            return
        mounted = self._mounted(name)
        if mounted == sorted(node.status.volumes_in_use):
            return
        act_for(name)
        patch: Doc = {"status": {"volumesInUse": mounted or None}}
        try:
            await self._client.patch(NODES, "", name, patch, content_type=MERGE, subresource="status")
        except NotFound:
            return

    def _mounted(self, node: str) -> list[str]:
        found: set[str] = set()
        for pod in self._pods.store.by_index(NODE, node):
            if not is_terminal(pod):
                found.update(self._volumes_of(pod))
        return sorted(found)

    def _volumes_of(self, pod: SimulatedPod) -> list[str]:
        volumes = (of_pod_volume(pod, one, self._claims.store.get, self._volumes.store.get) for one in pod.spec.volumes)
        return [
            volume.unique_name
            for volume in volumes
            if volume is not None and volume.options is None and is_attached_by(self._drivers.store.get(volume.driver))
        ]

    # -- events

    def _pod(self, pod: SimulatedPod) -> None:
        if pod.spec.node_name and may_be_attached(pod):
            self._queue.add(pod.spec.node_name)

    def _claim(self, claim: Object) -> None:
        for pod in self._pods.store.by_index(CLAIM, claim.key):
            self._pod(pod)

    def _volume(self, volume: PersistentVolume) -> None:
        ref = volume.spec.claim_ref
        for pod in self._pods.store.by_index(CLAIM, f"{ref.namespace}/{ref.name}") if ref is not None else ():
            self._pod(pod)
