"""storageversion-garbage-collector-controller: removes the entries of stopped API servers from StorageVersions.

Leases and StorageVersions are read from the API server, so that no entry is removed because of a stale cache.

upstream: pkg/controller/storageversiongc/gc_controller.go
"""

from contextlib import suppress

from kcm_cli.api.apiserverinternal import STORAGE_VERSIONS, StorageVersion
from kcm_cli.api.coordination import LEASES, Lease
from kcm_cli.controllers.storageversion_garbage_collector import plan
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Keys, Queue, Watch, starting
from kcm_cli.engine.worker import unhandled
from kcm_cli.rest.errors import NotFound
from kcm_cli.rest.listing import list_readable
from kcm_cli.rest.transport import RequestError
from kcm_cli.runtime.informer import Scope

NAMESPACE = "kube-system"
QUEUE = "storage_version_garbage_collector"


class StorageVersionCollector:
    """Keys are names of deleted leases, and in another queue names of StorageVersions with entries without a lease."""

    def __init__(self, context: ControllerContext) -> None:
        self._client, self._clock = context.client, context.clock
        self._leases = context.cache(LEASES)

    async def sync_lease(self, key: str) -> None:
        """Remove the entries of a stopped server from all StorageVersions that can be decoded.

        Raises the first error at the end.
        """
        if await self._lease(key) is not None:
            return
        errors: list[Exception] = []
        for versions in (await list_readable(self._client, STORAGE_VERSIONS)).items:
            try:
                await self._clean(versions, {key})
            except RequestError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    async def sync_version(self, key: str) -> None:
        """Remove the entries of stopped servers from a StorageVersion."""
        versions = await self._client.find(STORAGE_VERSIONS, "", key)
        if versions is None:
            return
        stopped = {name for name in {*plan.servers(versions)} if not plan.is_identity(await self._lease(name))}
        await self._clean(versions, stopped)

    async def _clean(self, versions: StorageVersion, stopped: set[str]) -> None:
        action = plan.plan(versions, stopped, self._clock.now())
        if action is not None:
            with suppress(NotFound):
                await writes.send(self._client, action)

    async def _lease(self, name: str) -> Lease | None:
        return await self._client.find(LEASES, NAMESPACE, name) if name else None

    def leaseless(self, versions: StorageVersion) -> Keys:
        """The name of a StorageVersion with entries of servers that have no lease."""
        without = any(self._leases.store.get(f"{NAMESPACE}/{name}") is None for name in plan.servers(versions))
        return (versions.name,) if without else ()


def name_of(collector: StorageVersionCollector, lease: Lease) -> Keys:
    """The name of a deleted lease, which is also its server's."""
    return (lease.name,)


_SERVERS = Scope(namespace=NAMESPACE, label_selector=f"{plan.IDENTITY}={plan.SERVER}")
CONTROLLER = Controller(
    StorageVersionCollector,
    (
        Queue(
            f"{QUEUE}_leases",
            Watch(LEASES, deleted=name_of, scope=_SERVERS),
            sync=StorageVersionCollector.sync_lease,
            failures=unhandled("lease {key} failed with: {error}"),
        ),
        Queue(
            f"{QUEUE}_storageversions",
            Watch(STORAGE_VERSIONS, changed=StorageVersionCollector.leaseless),
            sync=StorageVersionCollector.sync_version,
            failures=unhandled("storage version {key} failed with: {error}"),
        ),
    ),
    announces=starting("storage version garbage collector"),
)
