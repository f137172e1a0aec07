"""Compares the actual state with VolumeAttachments and FlexVolume drivers periodically.

upstream: pkg/volume/util/operationexecutor#GenerateVolumesAreAttachedFunc, pkg/volume/csi/csi_attacher.go
"""

import logging
from collections import defaultdict
from enum import Enum

from kcm_cli.controllers.persistentvolume_attach_detach.attacher import Attacher, AttachError
from kcm_cli.controllers.persistentvolume_attach_detach.metrics import AttachDetachMetrics
from kcm_cli.controllers.persistentvolume_attach_detach.world import World
from kcm_cli.engine.passes import OBJECTS
from kcm_cli.planning.volumes.attachable import AttachableVolume
from kcm_cli.rest.transport import RequestError
from kcm_cli.runtime.turns import in_turns

log = logging.getLogger(__name__)
NAME = "verify_volumes_are_attached_per_node"
NO_PLUGIN = "<n/a>"


class Found(Enum):
    """What a verification found."""

    ATTACHED = "attached"
    UNCERTAIN = "not attached, but its VolumeAttachment is not being deleted"
    DETACHED = "detached"


class Verifier:
    """Verifies attachments. A volume that is found detached is attached again if it is needed.

    One whose VolumeAttachment exists but is not attached may be attached at any time: it is not forgotten, so that it
    is detached when no pod needs it. Upstream forgets it, and the VolumeAttachment stays.
    """

    def __init__(self, world: World, attacher: Attacher, metrics: AttachDetachMetrics) -> None:
        self._world = world
        self._attacher = attacher
        self._metrics = metrics

    async def sweep(self) -> None:
        """Verify all attachments, one node after another. Yields to the loop in between."""
        on_node: defaultdict[str, list[AttachableVolume]] = defaultdict(list)
        async for found in in_turns(self._world.actual, OBJECTS):
            for node, at in found.nodes.items():
                if at.confirmed and found.volume is not None and _can_be_asked(found.volume):
                    on_node[node].append(found.volume)
        for node, volumes in on_node.items():
            with self._metrics.operations.measured(NO_PLUGIN, NAME):
                async for volume in in_turns(volumes, OBJECTS):
                    await self._verify(volume, node)

    async def _verify(self, volume: AttachableVolume, node: str) -> None:
        actual, name = self._world.actual, volume.unique_name
        at = actual.attachment(name, node)
        if at is None or not at.confirmed:
            return  # it was detached, and may be attached again just now
        fields = {"volume": name, "node": node}
        try:
            found = await self._find(volume, node)
        except (RequestError, AttachError) as error:
            log.warning("Attachment of the volume cannot be verified", extra={"fields": {**fields, "err": str(error)}})
            return
        if found is Found.ATTACHED or actual.attachment(name, node) is not at or not at.confirmed:
            return
        log.info("The volume is no longer attached", extra={"fields": fields})
        if found is Found.DETACHED:
            actual.detached(name, node)
        else:
            actual.uncertain(name, volume, node)
            actual.unreport(name, node)
        self._world.node_queue.add(node)
        self._world.volumes.add(name)

    async def _find(self, volume: AttachableVolume, node: str) -> Found:
        """What is known of an attachment. Nothing is found out where volumes of the driver are not attached."""
        if not self._world.is_attached(volume):
            return Found.ATTACHED
        if volume.options is not None:
            attached = await self._world.flex.is_attached(volume.plugin, volume.options, node)
            return Found.ATTACHED if attached else Found.DETACHED
        known = await self._attacher.find(volume, node)
        if known is not None and known.status.attached:
            return Found.ATTACHED
        return Found.DETACHED if known is None or known.deleting else Found.UNCERTAIN


def _can_be_asked(volume: AttachableVolume) -> bool:
    return bool(volume.driver) or volume.options is not None
