"""Runs one migration of a resource at a time, and records it in the CustomResourceDefinition.

Its keys are resources, not migrations.

upstream: pkg/controller/storageversionmigrator/migrationrunner.go
"""

from collections.abc import Callable
from contextlib import suppress

from kcm_cli.api.apiextensions import CUSTOM_RESOURCE_DEFINITIONS, CustomResourceDefinition
from kcm_cli.api.storagemigration import STORAGE_VERSION_MIGRATIONS, StorageVersionMigration
from kcm_cli.controllers.storage_version_migrator import plan
from kcm_cli.controllers.storage_version_migrator.plan import State
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Keys
from kcm_cli.planning.actions import Apply
from kcm_cli.rest.errors import NotFound

RESOURCE = "resource"
ATTEMPTS = 5


class MigrationRunner:
    """Keys are resources (``plural.group``)."""

    def __init__(self, context: ControllerContext) -> None:
        self._client, self._clock = context.client, context.clock
        self._migrations = context.cache(STORAGE_VERSION_MIGRATIONS).store
        self._migrations.add_index(RESOURCE, lambda one: (plan.key_of(one.spec.resource),))

    async def sync(self, key: str) -> None:
        migrations = self._migrations.by_index(RESOURCE, key)
        found = plan.plan(migrations)
        for ended in found.ended:
            await self._end(key, ended)
        if found.begin is not None:
            await self._begin(key, found.begin)

    async def _begin(self, key: str, migration: StorageVersionMigration) -> None:
        await self._mark(key, lambda crd: plan.begun(crd, migration, self._clock.now()))
        update = plan.status(migration, State.RUNNING, "The migration is running", self._clock.now())
        if update is not None:
            await writes.send(self._client, update)

    async def _end(self, key: str, migration: StorageVersionMigration) -> None:
        success = plan.is_in(migration, State.SUCCEEDED)
        await self._mark(key, lambda crd: plan.finished(crd, success=success, now=self._clock.now()))
        await writes.send(self._client, plan.completed(migration, self._clock.now()))

    async def _mark(self, key: str, status: Callable[[CustomResourceDefinition], Apply]) -> None:
        """Patch the status of the latest CustomResourceDefinition. Resources of the core group have none."""
        if key.endswith("."):
            return  # of the core group

        async def mark() -> None:
            crd = await self._client.get(CUSTOM_RESOURCE_DEFINITIONS, "", key)
            await writes.send(self._client, status(crd))

        with suppress(NotFound):
            await writes.retry_on(writes.Retries(ATTEMPTS), mark)

    def resource_of(self, migration: StorageVersionMigration) -> Keys:
        """The key of the resource that a migration is for."""
        return (plan.key_of(migration.spec.resource),)
