"""HorizontalPodAutoscalers: defaults, and refused values with their causes, as a v1.36 server answers."""

from typing import Any

from tests.kit.api import Api
from tests.kit.kinds import Causes, Kind, rows

HORIZONTAL_POD_AUTOSCALERS = Kind(
    "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
    {"spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}},
)
DEFAULTS: dict[str, Any] = {
    "spec.minReplicas": 1,
    "spec.metrics": [
        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}
    ],
}
REFUSED = [
    (
        "spec.maxReplicas",
        0,
        [
            "Required value: must be set and greater than 0",
            "Invalid value: 0: must be greater than or equal to `minReplicas`",
        ],
    ),
    (
        "spec.minReplicas",
        0,
        [
            "Invalid value: 0: must be greater than or equal to 1",
            "spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling t…",
        ],
    ),
    ("spec.minReplicas", 4, "spec.maxReplicas: Invalid value: 3: must be greater than or equal to `minReplicas`"),
    ("spec.scaleTargetRef.kind", "", "Required value"),
    ("spec.scaleTargetRef.name", "", "Required value"),
    ("spec.scaleTargetRef.name", "a/b", "Invalid value: \"a/b\": may not contain '/'"),
    (
        "spec.metrics",
        [{"type": "Weird"}],
        [
            'spec.metrics[0].type: Unsupported value: "Weird": supported values: "ContainerResource", "Externa…',
            'spec.metrics[0].type: Unsupported value: "Weird": supported values: "ContainerResource", "Externa…',
        ],
    ),
    ("spec.metrics", [{"type": "Resource"}], "spec.metrics[0].resource: Required value: must populate information fo…"),
    (
        "spec.metrics",
        [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 0}}}],
        "spec.metrics[0].resource.target.averageUtilization: Invalid value: 0: must be greater than 0",
    ),
    (
        "spec.metrics",
        [{"type": "Resource", "resource": {"name": "", "target": {"type": "Utilization", "averageUtilization": 5}}}],
        "spec.metrics[0].resource.name: Required value: must specify a resource name",
    ),
    (
        "spec.behavior",
        {"scaleUp": {"stabilizationWindowSeconds": -1}},
        "spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: -1: must be greater than or equal to z…",
    ),
    (
        "spec.behavior",
        {"scaleDown": {"policies": [{"type": "Pods", "value": 0, "periodSeconds": 60}]}},
        "spec.behavior.scaleDown.policies[0].value: Invalid value: 0: must be greater than zero",
    ),
    (
        "spec.behavior",
        {"scaleUp": {"selectPolicy": "Most"}},
        'spec.behavior.scaleUp.selectPolicy: Unsupported value: "Most": supported values: "Disabled", "Max", "Mi…',
    ),
]


async def test_defaults(api: Api) -> None:
    assert await HORIZONTAL_POD_AUTOSCALERS.created(api, *DEFAULTS) == DEFAULTS


@rows(REFUSED)
async def test_refused_values(api: Api, field: str, value: Any, causes: Causes) -> None:
    assert await HORIZONTAL_POD_AUTOSCALERS.refusal(api, field, value, causes) == causes
