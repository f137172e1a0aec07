"""StatefulSets: defaults, and refused values with their causes, as a v1.36 server answers."""

from typing import Any

from tests.kit.api import Api
from tests.kit.kinds import Kind, Row

STATEFUL_SETS = Kind(
    "/apis/apps/v1/namespaces/default/statefulsets",
    {
        "spec": {
            "serviceName": "s",
            "selector": {"matchLabels": {"app": "a"}},
            "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        }
    },
)
DEFAULTS: dict[str, Any] = {
    "spec.replicas": 1,
    "spec.podManagementPolicy": "OrderedReady",
    "spec.updateStrategy.type": "RollingUpdate",
    "spec.updateStrategy.rollingUpdate.partition": 0,
    "spec.revisionHistoryLimit": 10,
    "spec.persistentVolumeClaimRetentionPolicy.whenDeleted": "Retain",
    "spec.persistentVolumeClaimRetentionPolicy.whenScaled": "Retain",
}
REFUSED: list[Row] = [
    ("spec.selector", {}, "Invalid value: {}: empty selector is invalid for statefulset"),
    ("spec.selector.matchLabels", {"app": "b"}, 'spec.template.metadata.labels: Invalid value: {"app":"a"}: `sel…'),
    ("spec.replicas", -1, "Invalid value: -1: must be greater than or equal to 0"),
    ("spec.podManagementPolicy", "Wild", "Invalid value: \"Wild\": must be 'OrderedReady' or 'Parallel'"),
    ("spec.updateStrategy", {"type": "Fast"}, 'Invalid value: {"Type":"Fast","RollingUpdate":null}: must be \'Rol…'),
    (
        "spec.updateStrategy",
        {"type": "OnDelete", "rollingUpdate": {"partition": 1}},
        '.rollingUpdate: Invalid value: {"Partition":1,"MaxUnavailable":null}: only allowed for …',
    ),
    (
        "spec.updateStrategy",
        {"type": "RollingUpdate", "rollingUpdate": {"partition": -1}},
        ".rollingUpdate.partition: Invalid value: -1: must be greater than or equal to 0",
    ),
    ("spec.minReadySeconds", -1, "Invalid value: -1: must be greater than or equal to 0"),
    ("spec.ordinals", {"start": -1}, ".start: Invalid value: -1: must be greater than or equal to 0"),
    (
        "spec.persistentVolumeClaimRetentionPolicy",
        {"whenDeleted": "Keep"},
        '.whenDeleted: Unsupported value: "Keep": supported values: "Retain", "Delete"',
    ),
    ("spec.serviceName", "A B", 'Invalid value: "A B": a lowercase RFC 1123 label must consist of lower case …'),
    ("spec.template.spec.restartPolicy", "OnFailure", 'Unsupported value: "OnFailure": supported values: "Always"'),
    ("spec.template.spec.containers", [], "Required value"),
    (
        "spec.volumeClaimTemplates",
        [{"metadata": {"name": "v"}, "spec": {"accessModes": ["x"]}}],
        [
            '[0].spec.accessModes: Unsupported value: "x": supported values: "ReadOnlyMany", "ReadWriteMany", '
            '"ReadWriteOnce", "ReadWriteOncePod"',
            "[0].spec.resources[storage]: Required value",
        ],
    ),
]
KEPT: list[Row] = [
    ("spec.serviceName", "t", "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'o…"),
    ("spec.podManagementPolicy", "Parallel", "spec: Forbidden: updates to statefulset spec for fields other …"),
]


async def test_table(api: Api) -> None:
    await STATEFUL_SETS.check(api, DEFAULTS, REFUSED, KEPT)
