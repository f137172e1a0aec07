"""StatefulSets: defaults, and refused values with their causes, as a v1.36 server answers."""

from typing import Any

from tests.kit.api import Api
from tests.kit.kinds import Causes, Kind, rows

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
REFUSED = [
    ("spec.selector", {}, "Invalid value: {}: empty selector is invalid for statefulset"),
    ("spec.selector.matchLabels", {"app": "b"}, 'spec.template.metadata.labels: Invalid value: {"app":"a"}: `selecto…'),
    ("spec.replicas", -1, "Invalid value: -1: must be greater than or equal to 0"),
    ("spec.podManagementPolicy", "Wild", "Invalid value: \"Wild\": must be 'OrderedReady' or 'Parallel'"),
    ("spec.updateStrategy", {"type": "Fast"}, 'Invalid value: {"Type":"Fast","RollingUpdate":null}: must be \'Rol…'),
    (
        "spec.updateStrategy",
        {"type": "OnDelete", "rollingUpdate": {"partition": 1}},
        'spec.updateStrategy.rollingUpdate: Invalid value: {"Partition":1,"MaxUnavailable":null}: only allowed f…',
    ),
    (
        "spec.updateStrategy",
        {"type": "RollingUpdate", "rollingUpdate": {"partition": -1}},
        "spec.updateStrategy.rollingUpdate.partition: Invalid value: -1: must be greater than or equal to 0",
    ),
    ("spec.minReadySeconds", -1, "Invalid value: -1: must be greater than or equal to 0"),
    ("spec.ordinals", {"start": -1}, "spec.ordinals.start: Invalid value: -1: must be greater than or equal to 0"),
    (
        "spec.persistentVolumeClaimRetentionPolicy",
        {"whenDeleted": "Keep"},
        'spec.persistentVolumeClaimRetentionPolicy.whenDeleted: Unsupported value: "Keep": supported values: "Re…',
    ),
    ("spec.serviceName", "A B", 'Invalid value: "A B": a lowercase RFC 1123 label must consist of lower case alphanu…'),
    ("spec.template.spec.restartPolicy", "OnFailure", 'Unsupported value: "OnFailure": supported values: "Always"'),
    ("spec.template.spec.containers", [], "Required value"),
]
UNCHANGEABLE = [
    ("spec.serviceName", "t", "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordin…"),
    ("spec.podManagementPolicy", "Parallel", "spec: Forbidden: updates to statefulset spec for fields other than 're…"),
]


async def test_defaults(api: Api) -> None:
    assert await STATEFUL_SETS.created(api, *DEFAULTS) == DEFAULTS


@rows(REFUSED)
async def test_refused_values(api: Api, field: str, value: Any, causes: Causes) -> None:
    assert await STATEFUL_SETS.refusal(api, field, value, causes) == causes


@rows(UNCHANGEABLE)
async def test_refused_changes(api: Api, field: str, value: Any, causes: Causes) -> None:
    assert await STATEFUL_SETS.refused_change(api, field, value, causes) == causes
