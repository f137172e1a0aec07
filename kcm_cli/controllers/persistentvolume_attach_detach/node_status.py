"""Writes to nodes which volumes are attached to them (``status.volumesAttached``): they mount no others.

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
    """Writes for one node follow each other, so that the last one that arrives is the last one that was decided.

    upstream: nodeStatusUpdater.
    """

    def __init__(self, client: Door, nodes: Store[Node], actual: ActualState) -> None:
        self._client = client
        self._nodes = nodes
        self._actual = actual
        self._locks: dict[str, asyncio.Lock] = {}
        self._written: dict[str, Devices] = {}

    async def sync(self, name: str) -> None:
        """Write what is attached to a node, unless its status says so. A deleted one has it written when it is back."""
        async with self._locks.setdefault(name, asyncio.Lock()):
            node, volumes = self._nodes.get(name), self._actual.reports(name)
            if node is None or volumes is None or self._is_written(node, volumes):
                return
            attached: list[object] = [{"name": volume, "devicePath": device} for volume, device in volumes]
            patch: Doc = {"status": {"volumesAttached": attached or None}}
            try:
                await self._client.patch(NODES, "", name, patch, subresource="status")
            except NotFound:
                return
            self._written[name] = volumes

    def forget(self, name: str) -> None:
        """A node was deleted, and with it what was written to it."""
        self._written.pop(name, None)
        lock = self._locks.get(name)
        if lock is not None and not lock.locked():
            del self._locks[name]

    def _is_written(self, node: Node, volumes: Devices) -> bool:
        """By the cache, and by what was written that the cache may not show yet."""
        shown = sorted((volume.name, volume.device_path) for volume in node.status.volumes_attached)
        return shown == volumes and self._written.get(node.name, volumes) == volumes
