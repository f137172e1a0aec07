"""storage-version-migrator-controller: rewrites all objects of a resource, so that they are stored in the present
version.

Steps: one migration of a resource is chosen (``runner``), the API server's current resourceVersion is recorded, and
every object up to that version is written without a change. Objects that change in the meantime are rewritten by that.

Objects are listed from the API server. Upstream reads the garbage collector's cache, and waits until it is new enough.

upstream: pkg/controller/storageversionmigrator
"""

import logging

from kcm_cli.api.storagemigration import STORAGE_VERSION_MIGRATIONS, StorageVersionMigration
from kcm_cli.component.logs import V2, V4
from kcm_cli.controllers.storage_version_migrator import plan
from kcm_cli.controllers.storage_version_migrator.plan import State
from kcm_cli.controllers.storage_version_migrator.runner import MigrationRunner
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Queue, StartLines, Watch, only
from kcm_cli.engine.definitions import mapper
from kcm_cli.engine.worker import Failures
from kcm_cli.machinery.errors import SyncError
from kcm_cli.planning.actions import APPLY, Update
from kcm_cli.rest.errors import ApiError, Conflict, TooManyRequests
from kcm_cli.rest.listing import list_all, read_page
from kcm_cli.rest.mapper import NoMatch
from kcm_cli.rest.served_resources import ServedResource
from kcm_cli.rest.transport import RequestError

log = logging.getLogger(__name__)

NAME = "storage-version-migrator-controller"
WORKERS = 5
QPS_TIMES, BURST_TIMES = 20, 100
"""Upstream: cmd/kube-controller-manager/app/storageversionmigrator.go."""


class NotYet(SyncError):
    """The resource of a migration is not served yet, or cannot be read."""


_NOT_MIGRATED = "resource is not able to be migrated, not retrying"


class Migrator:
    """Keys are names of migrations."""

    def __init__(self, context: ControllerContext) -> None:
        self._client, self._clock = context.client, context.clock
        self._bulk = context.client.faster(QPS_TIMES, BURST_TIMES)
        self._mapper = mapper(context)
        self.runner = MigrationRunner(context)
        self._migrations = context.cache(STORAGE_VERSION_MIGRATIONS).store

    async def sync_version(self, key: str) -> None:
        """Record the API server's current resourceVersion in the migration."""
        migration = self._migrations.get(key)
        if migration is None or not plan.lacks_version(migration):
            return
        served = await self._served(migration)
        if served is None:
            await self._write(self._failed(migration, "resource does not exist in discovery"))
        elif not served.supports(*plan.VERBS):
            verbs = " ".join(plan.VERBS)
            log.error(_NOT_MIGRATED, extra={"fields": {"gvr": plan.shown(served.gvr)}})
            text = f'resource "{plan.shown(served.gvr)}" does not support discovery operations: [{verbs}]'
            await self._write(self._failed(migration, text))
        else:
            await self._write(await self._starting(migration, served))

    async def sync(self, key: str) -> None:
        """Rewrite the objects. A transient error is raised, and the migration is retried from the start."""
        migration = self._migrations.get(key)
        if migration is None or not plan.has_version(migration):
            return
        served = await self._served(migration)
        if served is None:
            await self._write(self._unhandled(migration, "unable to obtain GVR from discovery"))
            return
        try:
            await self._migrate(migration, served)
        except plan.VersionError as error:
            await self._write(self._unhandled(migration, str(error)))
            return
        except ApiError as error:
            if error.status >= 500 or isinstance(error, TooManyRequests):
                raise
            await self._write(self._unhandled(migration, str(error)))
            return
        await self._write(plan.status(migration, State.SUCCEEDED, "", self._clock.now()))

    async def _migrate(self, migration: StorageVersionMigration, served: ServedResource) -> None:
        resource = served.partial()
        for obj in (await list_all(self._client, resource, metadata_only=True)).items:
            if not plan.is_due(obj, migration):
                continue
            try:
                await self._bulk.patch(
                    resource,
                    obj.namespace,
                    obj.name,
                    plan.touch(resource, obj),
                    content_type=APPLY,
                    query=(("fieldManager", NAME),),
                    reason="storage version migration",
                )
            except RequestError as error:
                if not isinstance(error, Conflict):
                    fields = {
                        "namespace": obj.namespace,
                        "name": obj.name,
                        "gvr": plan.shown(resource.gvr),
                        "reason": getattr(error, "reason", ""),
                        "err": str(error),
                    }
                    log.error("Failed to migrate the resource", extra={"fields": fields})
                    raise
                log.log(V4, "Object migrated by a change of another client", extra={"fields": {"key": obj.key}})

    async def _starting(self, migration: StorageVersionMigration, served: ServedResource) -> Update | None:
        body = await self._client.list_page(served.partial(), limit=1, metadata_only=True)
        version = read_page(body).resource_version
        try:
            plan.order_of(version)
        except plan.VersionError as error:
            text = f"latest resourceVersion for {plan.shown(served.gvr)} is not valid: {error}"
            return self._failed(migration, text)
        return plan.starting_at(migration, version)

    async def _served(self, migration: StorageVersionMigration) -> ServedResource | None:
        """The resource of a migration; None if it is not served, and unlikely to be served soon. Raises NotYet."""
        resource = migration.spec.resource
        try:
            return await self._mapper.resource(resource.group, resource.resource)
        except NoMatch as error:
            known = await self._mapper.discovery()
            hidden = any(version.rpartition("/")[0] == resource.group for version in known.failed)
            if hidden or plan.is_young(migration, self._clock.now()):
                raise NotYet(str(error)) from error
            return None

    def _unhandled(self, migration: StorageVersionMigration, text: str) -> Update | None:
        return self._failed(migration, f"migration encountered unhandled error: {text}")

    def _failed(self, migration: StorageVersionMigration, text: str) -> Update | None:
        return plan.status(migration, State.FAILED, text, self._clock.now())

    async def _write(self, update: Update | None) -> None:
        if update is not None:
            await writes.send(self._client, update)


_VERSION_QUEUE = "resource-version-controller"
"""Of both: upstream's migrationrunner.go names its queue so, too."""
CONTROLLER = Controller(
    Migrator,
    (
        Queue(
            _VERSION_QUEUE,
            Watch(STORAGE_VERSION_MIGRATIONS, MigrationRunner.resource_of),
            sync=MigrationRunner.sync,
            failures=Failures(retried="Error syncing SVM resource, retrying", key="svm"),
        ),
        Queue(
            _VERSION_QUEUE,
            Watch(STORAGE_VERSION_MIGRATIONS, changed=only(plan.lacks_version)),
            sync=Migrator.sync_version,
            failures=Failures(retried="Error syncing SVM resource, retrying", level=V2, key="svm"),
        ),
        Queue(
            NAME,
            Watch(STORAGE_VERSION_MIGRATIONS, changed=only(plan.has_version)),
            sync=Migrator.sync,
            failures=Failures(retried="Error syncing SVM resource, retrying", level=V2, key="svm"),
            workers=WORKERS,
        ),
    ),
    announces=tuple(
        StartLines("Starting", "Shutting down", (("controller", name),))
        for name in (_VERSION_QUEUE, NAME, plan.MANAGER)
    ),
)
