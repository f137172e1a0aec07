"""Compares the actual state with VolumeAttachments and FlexVolume drivers periodically.

upstream: pkg/volume/util/operationexecutor#GenerateVolumesAreAttachedFunc, pkg/volume/csi/csi_attacher.go
"""

import logging
from collections import defaultdict

from kcm_cli.controllers.persistentvolume_attach_detach.attacher import Attacher, AttachError
from kcm_cli.controllers.persistentvolume_attach_detach.metrics import AttachDetachMetrics
from kcm_cli.controllers.persistentvolume_attach_detach.world import World
from kcm_cli.planning.volumes.attachable import AttachableVolume
from kcm_cli.rest.transport import RequestError

log = logging.getLogger(__name__)
NAME = "verify_volumes_are_attached_per_node"
NO_PLUGIN = "<n/a>"


class Verifier:
    """Verifies attachments. A volume that is found detached is attached again if it is needed."""

    def __init__(self, world: World, attacher: Attacher, metrics: AttachDetachMetrics) -> None:
        self._world = world
        self._attacher = attacher
        self._metrics = metrics

    async def sweep(self) -> None:
        """Verify all attachments, one node after another."""
        on_node: defaultdict[str, list[AttachableVolume]] = defaultdict(list)
        for found in self._world.actual:
            for node, at in found.nodes.items():
                if at.confirmed and found.volume is not None and _can_be_asked(found.volume):
                    on_node[node].append(found.volume)
        for node, volumes in on_node.items():
            with self._metrics.operations.measured(NO_PLUGIN, NAME):
                for volume in volumes:
                    await self._verify(volume, node)

    async def _verify(self, volume: AttachableVolume, node: str) -> None:
        fields = {"volume": volume.unique_name, "node": node}
        try:
            if not self._world.is_attached(volume) or await self._still(volume, node):
                return
        except (RequestError, AttachError) as error:
            log.warning("Attachment of the volume cannot be verified", extra={"fields": {**fields, "err": str(error)}})
            return
        log.info("The volume is no longer attached", extra={"fields": fields})
        self._world.actual.detached(volume.unique_name, node)
        self._world.node_queue.add(node)
        self._world.volumes.add(volume.unique_name)

    async def _still(self, volume: AttachableVolume, node: str) -> bool:
        if volume.options is not None:
            return await self._world.flex.is_attached(volume.plugin, volume.options, node)
        return await self._attacher.is_attached(volume, node)


def _can_be_asked(volume: AttachableVolume) -> bool:
    return bool(volume.driver) or volume.options is not None
