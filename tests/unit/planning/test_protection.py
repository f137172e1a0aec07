"""When a finalizer is added, removed, or left."""

import pytest

from kcm_cli.api.storage import PERSISTENT_VOLUMES
from kcm_cli.machinery.meta import ObjectMeta, PartialObject
from kcm_cli.planning import protection

OURS, OTHER = "ours", "other"
GOING = "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("finalizers", "deleted", "used", "expected"),
    [
        pytest.param((OTHER,), "", False, [OTHER, OURS], id="it is added"),
        pytest.param((OTHER, OURS), "", True, None, id="it is there"),
        pytest.param((OURS, OTHER), GOING, True, None, id="being deleted, and used"),
        pytest.param((OURS, OTHER), GOING, False, [OTHER], id="being deleted, and not used"),
        pytest.param((OTHER,), GOING, False, None, id="being deleted without it"),
    ],
)
def test_plan(finalizers: tuple[str, ...], deleted: str, used: bool, expected: list[str] | None) -> None:
    meta = ObjectMeta(name="v", deletion_timestamp=deleted or None, finalizers=finalizers)
    update = protection.plan(PERSISTENT_VOLUMES, PartialObject(metadata=meta), OURS, used=used)
    assert (update and update.changes[("metadata", "finalizers")]) == expected
