"""PersistentVolumeClaims: defaults, and refused values with their causes, as a v1.36 server answers."""

from typing import Any

from tests.kit.api import Api
from tests.kit.kinds import Causes, Kind, rows

PERSISTENT_VOLUME_CLAIMS = Kind(
    "/api/v1/namespaces/default/persistentvolumeclaims",
    {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
)
DEFAULTS: dict[str, Any] = {
    "spec.volumeMode": "Filesystem",
    "status.phase": "Pending",
    "metadata.finalizers": ["kubernetes.io/pvc-protection"],
}
REFUSED = [
    ("spec.accessModes", [], "Required value: at least 1 access mode is required"),
    ("spec.accessModes", ["ReadOften"], 'Unsupported value: "ReadOften": supported values: "ReadOnlyMany", "ReadWrit…'),
    (
        "spec.accessModes",
        ["ReadWriteOncePod", "ReadWriteOnce"],
        "Forbidden: may not use ReadWriteOncePod with other access modes",
    ),
    ("spec.resources", {}, "spec.resources[storage]: Required value"),
    ("spec.resources.requests.storage", "0", 'spec.resources[storage]: Invalid value: "0": must be greater than zero'),
    ("spec.resources.requests.storage", "-1", 'spec.resources[storage]: Invalid value: "-1": must be greater than ze…'),
    ("spec.storageClassName", "A B", 'Invalid value: "A B": a lowercase RFC 1123 subdomain must consist of lower cas…'),
    ("spec.volumeMode", "Disk", 'Unsupported value: "Disk": supported values: "Block", "Filesystem"'),
    (
        "spec.selector",
        {"matchExpressions": [{"key": "a", "operator": "In"}]},
        "spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or…",
    ),
]
UNCHANGEABLE = [
    ("spec.accessModes", ["ReadWriteMany"], "spec: Forbidden: spec is immutable after creation except resources.requ…"),
    ("spec.resources.requests.storage", "2Gi", "spec: Forbidden: spec is immutable after creation except resources.r…"),
]


async def test_defaults(api: Api) -> None:
    assert await PERSISTENT_VOLUME_CLAIMS.created(api, *DEFAULTS) == DEFAULTS


@rows(REFUSED)
async def test_refused_values(api: Api, field: str, value: Any, causes: Causes) -> None:
    assert await PERSISTENT_VOLUME_CLAIMS.refusal(api, field, value, causes) == causes


@rows(UNCHANGEABLE)
async def test_refused_changes(api: Api, field: str, value: Any, causes: Causes) -> None:
    assert await PERSISTENT_VOLUME_CLAIMS.refused_change(api, field, value, causes) == causes
