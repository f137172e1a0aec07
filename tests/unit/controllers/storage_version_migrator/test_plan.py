"""The migration that runs, and statuses."""

from datetime import UTC, datetime
from typing import Any

import pytest

from kcm_cli.api.apiextensions import CUSTOM_RESOURCE_DEFINITIONS, CustomResourceDefinition
from kcm_cli.api.resource import GVR, Resource
from kcm_cli.api.storagemigration import STORAGE_VERSION_MIGRATIONS, StorageVersionMigration
from kcm_cli.controllers.storage_version_migrator import plan
from kcm_cli.controllers.storage_version_migrator.plan import State
from kcm_cli.machinery import codec
from kcm_cli.machinery.meta import ObjectMeta, PartialObject

NOW = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)


def migration(name: str = "a", *states: str, second: int = 0, version: str = "") -> StorageVersionMigration:
    metadata = {"name": name, "creationTimestamp": f"2026-01-01T00:00:{second:02}Z", "generation": 2}
    conditions = [{"type": state.removeprefix("not "), "status": str(state[:4] != "not ")} for state in states]
    status = {"conditions": [*conditions, {"type": "Other", "status": "True"}], "resourceVersion": version}
    return STORAGE_VERSION_MIGRATIONS.decode(codec.encode({"metadata": metadata, "spec": {}, "status": status}))


def definition(*, generation: int = 3, marked: int | None = 3) -> CustomResourceDefinition:
    conditions = (
        [] if marked is None else [{"type": "StorageMigrating", "status": "True", "observedGeneration": marked}]
    )
    versions = [{"name": "v1", "storage": False}, {"name": "v2", "storage": True}]
    metadata = {"name": "widgets.example.com", "generation": generation, "resourceVersion": "7"}
    doc = {"metadata": metadata, "spec": {"versions": versions}, "status": {"conditions": conditions}}
    return CUSTOM_RESOURCE_DEFINITIONS.decode(codec.encode(doc))


@pytest.mark.parametrize(
    ("migrations", "expected"),
    [
        pytest.param([], None, id="none"),
        pytest.param([migration("b", second=1), migration("c", second=0)], "c", id="the oldest"),
        pytest.param([migration("b"), migration("a")], "a", id="of one age the first by name"),
        pytest.param([migration("b"), migration("a", "Running")], None, id="one runs"),
        pytest.param([migration("a", "Running"), migration("b")], None, id="one runs, listed first"),
        pytest.param([migration("b"), migration("a", "Running", "Failed")], "b", id="one that ran has failed"),
        pytest.param([migration("b"), migration("a", "not Running", "Succeeded")], "b", id="one is done"),
        pytest.param([migration("a", "Failed")], None, id="it has failed before it ran"),
    ],
)
def test_the_next_one(migrations: list[StorageVersionMigration], expected: str | None) -> None:
    found = plan.plan(migrations).begin
    assert (found.name if found else None) == expected


def test_ended_migrations() -> None:
    done = migration("a", "Running", "Succeeded")
    assert plan.plan([done, migration("b", "Running"), migration("c", "not Running", "Failed")]).ended == (done,)


@pytest.mark.parametrize("states", [("Succeeded",), ("not Succeeded",)])
def test_a_condition_is_written_once(states: tuple[str, ...]) -> None:
    assert plan.status(migration("a", *states), State.SUCCEEDED, "", NOW) is None


def test_other_conditions_are_kept() -> None:
    update = plan.status(migration("a", "Running"), State.FAILED, "why", NOW)
    assert update is not None
    running, other, failed = update.changes["status", "conditions"]  # type: ignore[misc]
    assert (running["type"], other["type"]) == ("Running", "Other")
    assert failed == {
        "type": "Failed",
        "status": "True",
        "lastTransitionTime": "2026-01-01T00:01:00Z",
        "reason": "StorageVersionMigrationFailed",
        "message": "why",
    }


def test_completed() -> None:
    update = plan.completed(migration("a", "Running", "Succeeded"), NOW)
    running, succeeded, other = update.changes["status", "conditions"]  # type: ignore[misc]
    assert running == {
        "type": "Running",
        "status": "False",
        "lastTransitionTime": "2026-01-01T00:01:00Z",
        "observedGeneration": 2,
        "reason": "MigrationCompleted",
        "message": "Migration completed",
    }
    assert (succeeded, other) == ({"type": "Succeeded", "status": "True"}, {"type": "Other", "status": "True"})


@pytest.mark.parametrize("version", ["", "0", "012", "1a", "²"])
def test_non_numeric_resource_versions_cannot_be_compared(version: str) -> None:
    with pytest.raises(plan.VersionError, match=f"^resource version is not well formed: {version}$"):
        plan.order_of(version)


@pytest.mark.parametrize(("version", "due"), [("9", True), ("10", True), ("11", False), ("9" * 5000, False)])
def test_objects_that_are_older_are_due(version: str, due: bool) -> None:
    obj = PartialObject(metadata=ObjectMeta(name="x", uid="u", resource_version=version))
    assert plan.is_due(obj, migration(version="10")) is due
    resource = Resource(GVR("apps", "v1", "deployments"), "Deployment", PartialObject)
    meta = {"uid": "u", "resourceVersion": version}
    assert plan.touch(resource, obj) == {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta}


@pytest.mark.parametrize(
    ("crd", "success", "message", "more"),
    [
        pytest.param(
            definition(),
            True,
            "The migration has succeeded and the stored versions have been updated",
            {"storedVersions": ["v2"]},
            id="as it was",
        ),
        pytest.param(
            definition(generation=4),
            True,
            "The migration has succeeded but the stored versions have not been updated due to a generation mismatch",
            {},
            id="changed meanwhile",
        ),
        pytest.param(
            definition(marked=None),
            True,
            "The migration has succeeded but the stored versions have not been updated due to a generation mismatch",
            {},
            id="never marked",
        ),
        pytest.param(
            definition(), False, "The migration has failed", {}, id="a failed migration keeps the stored versions"
        ),
    ],
)
def test_definitions(crd: CustomResourceDefinition, success: bool, message: str, more: dict[str, Any]) -> None:
    doc: Any = plan.finished(crd, success=success, now=NOW).body
    status = doc["status"]
    assert isinstance(status, dict)
    (condition,) = status.pop("conditions")  # type: ignore[misc]
    assert doc["metadata"] == {"name": "widgets.example.com", "resourceVersion": "7"}
    assert (condition["status"], condition["message"], status) == ("False", message, more)
    assert condition["observedGeneration"] == crd.metadata.generation
