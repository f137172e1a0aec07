"""Decides which migration of a resource runs, and computes statuses.

upstream: pkg/controller/storageversionmigrator/{migrationrunner,storageversionmigrator,util}.go
"""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum

import msgspec

from kcm_cli.api.apiextensions import CUSTOM_RESOURCE_DEFINITIONS, CustomResourceDefinition
from kcm_cli.api.resource import GVR, Resource
from kcm_cli.api.storagemigration import STORAGE_VERSION_MIGRATIONS, GroupResource, StorageVersionMigration
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.errors import SyncError
from kcm_cli.machinery.meta import PartialObject
from kcm_cli.machinery.times import format_time, parse_time
from kcm_cli.planning.actions import Apply, Update
from kcm_cli.planning.conditions import find

PATIENCE_S = 60.0
"""A resource that discovery does not know may have been created just now."""
MANAGER = "migration-runner-controller"
VERBS = ("update", "patch", "list")
MIGRATING = "StorageMigrating"


class State(StrEnum):
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


_REASONS = {
    State.RUNNING: "MigrationRunning",
    State.SUCCEEDED: "StorageVersionMigrationSucceeded",
    State.FAILED: "StorageVersionMigrationFailed",
}


def is_in(migration: StorageVersionMigration, state: State) -> bool:
    conditions = migration.status.conditions
    return any(one.get("type") == state and one.get("status") == "True" for one in conditions)


def is_over(migration: StorageVersionMigration) -> bool:
    return is_in(migration, State.SUCCEEDED) or is_in(migration, State.FAILED)


def runs(migration: StorageVersionMigration) -> bool:
    """Whether the migration is running."""
    return is_in(migration, State.RUNNING) and not is_over(migration)


def lacks_version(migration: StorageVersionMigration) -> bool:
    """Whether it is running without a recorded resourceVersion."""
    return runs(migration) and not migration.status.resource_version


def has_version(migration: StorageVersionMigration) -> bool:
    """Whether it is running with a recorded resourceVersion."""
    return runs(migration) and bool(migration.status.resource_version)


def key_of(resource: GroupResource) -> str:
    """``plural.group``, which is also the name of a CustomResourceDefinition."""
    return f"{resource.resource}.{resource.group}"


class Turn(msgspec.Struct, frozen=True):
    """Which migration's turn it is.

    ended: finished migrations that are still marked as running. begin: the next one to run, if any.
    """

    ended: tuple[StorageVersionMigration, ...]
    begin: StorageVersionMigration | None


def plan(migrations: Sequence[StorageVersionMigration]) -> Turn:
    """Decide about all migrations of a resource: one runs at a time, the oldest first."""
    ended = tuple(one for one in migrations if is_in(one, State.RUNNING) and is_over(one))
    if any(runs(one) for one in migrations):
        return Turn(ended, None)
    waiting = [one for one in migrations if not is_in(one, State.RUNNING) and not is_over(one)]
    return Turn(ended, min(waiting, key=lambda one: (one.metadata.creation_timestamp or "", one.name), default=None))


def is_young(migration: StorageVersionMigration, now: datetime) -> bool:
    created = migration.metadata.creation_timestamp
    return created is not None and (now - parse_time(created)).total_seconds() < PATIENCE_S


def status(migration: StorageVersionMigration, state: State, message: str, now: datetime) -> Update | None:
    """The status of a migration that enters a state; None if it has the condition as True or False."""
    conditions = migration.status.conditions
    if any(one.get("type") == state and one.get("status") in ("True", "False") for one in conditions):
        return None
    made: Doc = {
        "type": state.value,
        "status": "True",
        "lastTransitionTime": format_time(now),
        "reason": _REASONS[state],
        "message": message,
    }
    return _conditions(migration, [*conditions, made])


def completed(migration: StorageVersionMigration, now: datetime) -> Update:
    """The status of a migration that has stopped running."""
    changed: Doc = {
        "status": "False",
        "lastTransitionTime": format_time(now),
        "observedGeneration": migration.metadata.generation,
        "reason": "MigrationCompleted",
        "message": "Migration completed",
    }
    known = migration.status.conditions
    return _conditions(migration, [{**one, **changed} if one.get("type") == State.RUNNING else one for one in known])


def starting_at(migration: StorageVersionMigration, version: str) -> Update:
    """An update that records the resourceVersion up to which objects are migrated."""
    return Update(STORAGE_VERSION_MIGRATIONS, migration, {("status", "resourceVersion"): version}, "status")


def _conditions(migration: StorageVersionMigration, conditions: list[Doc]) -> Update:
    return Update(STORAGE_VERSION_MIGRATIONS, migration, {("status", "conditions"): conditions}, "status")


class VersionError(SyncError):
    """A resourceVersion that cannot be compared."""


def order_of(version: str) -> tuple[int, str]:
    """The sort key of a resourceVersion, a decimal number of any length. Raises VersionError for other text.

    upstream: staging/src/k8s.io/apimachinery/pkg/util/resourceversion
    """
    if not (version.isascii() and version.isdecimal()) or version.startswith("0"):
        raise VersionError(f"resource version is not well formed: {version}")
    return len(version), version


def is_due(obj: PartialObject, migration: StorageVersionMigration) -> bool:
    """Whether an object was last written before the recorded resourceVersion. Raises VersionError."""
    return order_of(obj.metadata.resource_version) <= order_of(migration.status.resource_version)


def touch(resource: Resource[PartialObject], obj: PartialObject) -> Doc:
    """An apply configuration without fields for this version of the object. The API server stores it in the present
    version."""
    meta: Doc = {"uid": obj.uid, "resourceVersion": obj.metadata.resource_version}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta}


def shown(gvr: GVR) -> str:
    return f"{gvr.group}/{gvr.version}, Resource={gvr.plural}"


def begun(crd: CustomResourceDefinition, migration: StorageVersionMigration, now: datetime) -> Apply:
    """The status of a CustomResourceDefinition whose objects are being migrated."""
    return _marked(crd, "True", "MigrationRunning", f"Migration {migration.name} is running", now, {})


def finished(crd: CustomResourceDefinition, *, success: bool, now: datetime) -> Apply:
    """The status of a CustomResourceDefinition after the migration. On success, former stored versions are removed,
    unless the definition has changed.

    After a failure former versions are kept, since objects may be stored in them. Upstream (finishCRDMigration) removes
    them.
    """
    if not success:
        return _marked(crd, "False", "MigrationFailed", "The migration has failed", now, {})
    text = "The migration has succeeded"
    marked = find(crd.status.conditions, MIGRATING)
    if marked is None or marked.observed_generation != crd.metadata.generation:
        text += " but the stored versions have not been updated due to a generation mismatch"
        return _marked(crd, "False", "MigrationSucceeded", text, now, {})
    stored: list[object] = [version.name for version in crd.spec.versions if version.storage]
    text += " and the stored versions have been updated"
    return _marked(crd, "False", "MigrationSucceeded", text, now, {"storedVersions": stored})


def _marked(crd: CustomResourceDefinition, status: str, reason: str, message: str, now: datetime, more: Doc) -> Apply:
    condition: Doc = {
        "type": MIGRATING,
        "status": status,
        "lastTransitionTime": format_time(now),
        "reason": reason,
        "message": message,
        "observedGeneration": crd.metadata.generation,
    }
    body: Doc = {
        "apiVersion": CUSTOM_RESOURCE_DEFINITIONS.api_version,
        "kind": CUSTOM_RESOURCE_DEFINITIONS.kind,
        "metadata": {"name": crd.name, "resourceVersion": crd.metadata.resource_version},
        "status": {"conditions": [condition], **more},
    }
    return Apply(CUSTOM_RESOURCE_DEFINITIONS, "", crd.name, body, MANAGER, "status")
