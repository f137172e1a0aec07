"""What remains of a StorageVersion without some of its servers."""

from datetime import UTC, datetime
from typing import Any

import pytest

from kcm_cli.api.apiserverinternal import STORAGE_VERSIONS, StorageVersion
from kcm_cli.controllers.storageversion_garbage_collector.plan import plan
from kcm_cli.machinery import codec
from kcm_cli.planning.actions import ABSENT, Delete, Update

NOW = datetime(2026, 1, 2, tzinfo=UTC)
BEFORE = "2026-01-01T00:00:00Z"
SET, UNSET = ("True", "CommonEncodingVersionSet"), ("False", "CommonEncodingVersionUnset")


def versions(*entries: tuple[str, str], common: str | None = None, condition: bool = True) -> StorageVersion:
    status: dict[str, Any] = {
        "storageVersions": [{"apiServerID": name, "encodingVersion": version} for name, version in entries],
        "conditions": [{"type": "Other", "status": "True", "reason": "r"}],
    }
    if common is not None:
        status["commonEncodingVersion"] = common
    if condition:
        state, reason = UNSET if common is None else SET
        known = {"type": "AllEncodingVersionsEqual", "status": state, "reason": reason, "lastTransitionTime": BEFORE}
        status["conditions"].append(known)
    metadata = {"name": "a.b", "uid": "u", "resourceVersion": "7", "generation": 4}
    return STORAGE_VERSIONS.decode(codec.encode({"metadata": metadata, "spec": {}, "status": status}))


def test_no_write_while_all_servers_exist() -> None:
    assert plan(versions(("a", "v1"), ("b", "v1")), {"c"}, NOW) is None


def test_without_servers_the_object_is_deleted() -> None:
    gone = plan(versions(("a", "v1"), ("b", "v1")), {"a", "b"}, NOW)
    assert isinstance(gone, Delete)
    assert (gone.name, gone.uid, gone.resource_version) == ("a.b", "u", "7")


@pytest.mark.parametrize(
    ("given", "common", "state", "since"),
    [
        pytest.param(versions(("a", "v2"), ("b", "v1")), "v1", SET, "2026-01-02T00:00:00Z", id="the rest agrees"),
        pytest.param(versions(("a", "v1"), ("b", "v1"), common="v1"), "v1", SET, BEFORE, id="it did before"),
        pytest.param(
            versions(("a", "v1"), ("b", "v2"), common="v1"), "v2", SET, "2026-01-02T00:00:00Z", id="on something else"
        ),
        pytest.param(versions(("a", "v1"), ("b", "v1"), ("c", "v2")), ABSENT, UNSET, BEFORE, id="the rest differs"),
        pytest.param(
            versions(("a", "v1"), ("b", "v1"), condition=False),
            "v1",
            SET,
            "2026-01-02T00:00:00Z",
            id="no condition",
        ),
    ],
)
def test_the_common_encoding_version(given: StorageVersion, common: Any, state: tuple[str, str], since: str) -> None:
    update = plan(given, {"a"}, NOW)
    assert isinstance(update, Update)
    changes = {path[1]: value for path, value in update.changes.items()}
    other, condition = changes["conditions"]  # type: ignore[misc]
    assert changes["commonEncodingVersion"] == common
    assert (
        [entry["apiServerID"] for entry in changes["storageVersions"]]
        == [  # type: ignore[attr-defined]
            entry["apiServerID"] for entry in given.status.storage_versions[1:]
        ]
    )
    assert other == {"type": "Other", "status": "True", "reason": "r"}
    assert (condition["status"], condition["reason"]) == state
    assert (condition["lastTransitionTime"], condition["observedGeneration"]) == (since, 4)
