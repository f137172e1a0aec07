"""storageversion-garbage-collector-controller: entries of API servers that are gone leave the StorageVersions.

Nothing is taken out because a cache is old: leases and StorageVersions are read afresh.

upstream: pkg/controller/storageversiongc/gc_controller.go
"""

from kcm_cli.api.apiserverinternal import STORAGE_VERSIONS, StorageVersion
from kcm_cli.api.coordination import LEASES, Lease
from kcm_cli.controllers.storageversion_garbage_collector import plan
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext, Runnable
from kcm_cli.engine.resync import Together
from kcm_cli.planning.actions import Delete
from kcm_cli.rest.errors import NotFound
from kcm_cli.rest.listing import list_all
from kcm_cli.rest.transport import RequestError
from kcm_cli.runtime.informer import Scope

NAMESPACE = "kube-system"
QUEUE = "storage_version_garbage_collector"


def build(context: ControllerContext) -> Runnable:
    collector = StorageVersionCollector(context)
    parts = ((collector.lease_queue, collector.sync_lease), (collector.version_queue, collector.sync_version))
    return Together(tuple(context.worker(queue, sync, count=1, waits_for=collector.informers) for queue, sync in parts))


class StorageVersionCollector:
    """Keys are names of leases that went, and of StorageVersions with entries that no lease stands for."""

    def __init__(self, context: ControllerContext) -> None:
        self._client, self._clock = context.client, context.clock
        self.lease_queue = context.queue(f"{QUEUE}_leases")
        self.version_queue = context.queue(f"{QUEUE}_storageversions")
        scope = Scope(namespace=NAMESPACE, label_selector=f"{plan.IDENTITY}={plan.SERVER}")
        self._leases = context.informers.get(LEASES, scope)
        self._versions = context.informers.get(STORAGE_VERSIONS)
        self.informers = (self._leases, self._versions)
        self._leases.listen(on_delete=lambda lease: self.lease_queue.add(lease.name))
        self._versions.listen(on_add=self._version, on_update=lambda old, new: self._version(new))

    async def sync_lease(self, key: str) -> None:
        """A server is gone: its entries go everywhere. Raises the first error, after all have been tried."""
        if await self._lease(key) is not None:
            return
        errors: list[Exception] = []
        for versions in (await list_all(self._client, STORAGE_VERSIONS)).items:
            try:
                await self._clean(versions, {key})
            except RequestError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    async def sync_version(self, key: str) -> None:
        """Take out of a StorageVersion what no running server stands for."""
        try:
            versions = await self._client.get(STORAGE_VERSIONS, "", key)
        except NotFound:
            return
        gone = {name for name in {*plan.servers(versions)} if not plan.is_identity(await self._lease(name))}
        await self._clean(versions, gone)

    async def _clean(self, versions: StorageVersion, gone: set[str]) -> None:
        action = plan.without(versions, gone, self._clock.now())
        try:
            if isinstance(action, Delete):
                await writes.delete(self._client, action)
            elif action is not None:
                await writes.update(self._client, action)
        except NotFound:
            return

    async def _lease(self, name: str) -> Lease | None:
        if not name:
            return None
        try:
            return await self._client.get(LEASES, NAMESPACE, name)
        except NotFound:
            return None

    def _version(self, versions: StorageVersion) -> None:
        if any(self._leases.store.get(f"{NAMESPACE}/{name}") is None for name in plan.servers(versions)):
            self.version_queue.add(versions.name)
