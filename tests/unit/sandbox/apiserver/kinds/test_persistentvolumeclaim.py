"""PersistentVolumeClaims: defaults, and refused values with their causes, as a v1.36 server answers."""

from typing import Any

from tests.kit.api import Api
from tests.kit.kinds import Kind, Row

PERSISTENT_VOLUME_CLAIMS = Kind(
    "/api/v1/namespaces/default/persistentvolumeclaims",
    {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
)
DEFAULTS: dict[str, Any] = {
    "spec.volumeMode": "Filesystem",
    "status.phase": "Pending",
    "metadata.finalizers": ["kubernetes.io/pvc-protection"],
}
REFUSED: list[Row] = [
    ("spec.accessModes", [], "Required value: at least 1 access mode is required"),
    ("spec.accessModes", ["ReadOften"], 'Unsupported value: "ReadOften": supported values: "ReadOnlyMany", "Read…'),
    (
        "spec.accessModes",
        ["ReadWriteOncePod", "ReadWriteOnce"],
        "Forbidden: may not use ReadWriteOncePod with other access modes",
    ),
    ("spec.resources", {}, "[storage]: Required value"),
    ("spec.resources.requests.storage", "0", 'spec.resources[storage]: Invalid value: "0": must be greater than zero'),
    ("spec.resources.requests.storage", "-1", 'spec.resources[storage]: Invalid value: "-1": must be greater …'),
    ("spec.storageClassName", "A B", 'Invalid value: "A B": a lowercase RFC 1123 subdomain must consist of …'),
    ("spec.volumeMode", "Disk", 'Unsupported value: "Disk": supported values: "Block", "Filesystem"'),
    (
        "spec.selector",
        {"matchExpressions": [{"key": "a", "operator": "In"}]},
        ".matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
    ),
    ("spec.resources", {"requests": {"storage": "0"}}, '[storage]: Invalid value: "0": must be greater than zero'),
]
KEPT: list[Row] = [
    ("spec.accessModes", ["ReadWriteMany"], "spec: Forbidden: spec is immutable after creation except resources.…"),
    ("spec.resources.requests.storage", "2Gi", "spec: Forbidden: spec is immutable after creation except …"),
]


async def test_table(api: Api) -> None:
    await PERSISTENT_VOLUME_CLAIMS.check(api, DEFAULTS, REFUSED, KEPT)
