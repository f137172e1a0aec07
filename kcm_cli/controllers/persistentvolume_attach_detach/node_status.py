"""Writes the attached volumes to the status of nodes (``status.volumesAttached``). Kubelets mount no others.

upstream: pkg/controller/volume/attachdetach/statusupdater/node_status_updater.go
"""

import asyncio

from kcm_cli.api.core import NODES, Node
from kcm_cli.controllers.persistentvolume_attach_detach.states import ActualState
from kcm_cli.engine.door import Door
from kcm_cli.machinery.codec import Doc
from kcm_cli.rest.errors import NotFound
from kcm_cli.runtime.store import Store

Devices = list[tuple[str, str]]


class NodeStatuses:
    """Writes for one node are serialized, so that the last one has the latest state.

    upstream: nodeStatusUpdater.
    """

    def __init__(self, client: Door, nodes: Store[Node], actual: ActualState) -> None:
        self._client = client
        self._nodes = nodes
        self._actual = actual
        self._locks: dict[str, asyncio.Lock] = {}
        self._written: dict[str, tuple[Devices, int]] = {}
        """What was written last, and which version that made."""

    async def sync(self, name: str) -> None:
        """Write the attached volumes to a node's status, if it differs. A deleted node is written when it is created
        again."""
        async with self._locks.setdefault(name, asyncio.Lock()):
            node, volumes = self._nodes.get(name), self._actual.reports(name)
            if node is None or volumes is None or self._is_written(node, volumes):
                return
            attached: list[object] = [{"name": volume, "devicePath": device} for volume, device in volumes]
            patch: Doc = {"status": {"volumesAttached": attached or None}}
            try:
                answer = await self._client.patch(
                    NODES, "", name, patch, subresource="status", reason="attached volumes changed"
                )
            except NotFound:
                return
            self._written[name] = volumes, answer.version

    def forget(self, name: str) -> None:
        """Forget a deleted node and its last write."""
        self._written.pop(name, None)
        lock = self._locks.get(name)
        if lock is not None and not lock.locked():
            del self._locks[name]

    def known_nodes(self) -> set[str]:
        """The nodes that were, or are being, written."""
        return self._locks.keys() | self._written.keys()

    def differs(self, node: Node) -> bool:
        """Whether a node's status differs from the attached volumes, although the node is not older than the last
        write."""
        volumes = self._actual.reports(node.name)
        return volumes is not None and not self._is_written(node, volumes)

    def _is_written(self, node: Node, volumes: Devices) -> bool:
        """Whether the node's status is right, by the cache or by a later write that the cache does not show yet."""
        written, version = self._written.get(node.name, (volumes, 0))
        if node.version < version:
            return written == volumes
        return sorted((volume.name, volume.device_path) for volume in node.status.volumes_attached) == volumes
