"""HorizontalPodAutoscalers: defaults, and refused values with their causes, as a v1.36 server answers."""

from typing import Any

from tests.kit.api import Api
from tests.kit.kinds import Kind, Row

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
REFUSED: list[Row] = [
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
            "spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to …",
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
            '[0].type: Unsupported value: "Weird": supported values: "ContainerResource", "External", "Object", …',
            '[0].type: Unsupported value: "Weird": supported values: "ContainerResource", "External", "Object", …',
        ],
    ),
    ("spec.metrics", [{"type": "Resource"}], "[0].resource: Required value: must populate information for the …"),
    (
        "spec.metrics",
        [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 0}}}],
        "[0].resource.target.averageUtilization: Invalid value: 0: must be greater than 0",
    ),
    (
        "spec.metrics",
        [{"type": "Resource", "resource": {"name": "", "target": {"type": "Utilization", "averageUtilization": 5}}}],
        "[0].resource.name: Required value: must specify a resource name",
    ),
    (
        "spec.behavior",
        {"scaleUp": {"stabilizationWindowSeconds": -1}},
        ".scaleUp.stabilizationWindowSeconds: Invalid value: -1: must be greater than or equal to zero",
    ),
    (
        "spec.behavior",
        {"scaleDown": {"policies": [{"type": "Pods", "value": 0, "periodSeconds": 60}]}},
        ".scaleDown.policies[0].value: Invalid value: 0: must be greater than zero",
    ),
    (
        "spec.behavior",
        {"scaleUp": {"selectPolicy": "Most"}},
        '.scaleUp.selectPolicy: Unsupported value: "Most": supported values: "Disabled", "Max", "Min"',
    ),
    ("spec.behavior", {"scaleUp": {"policies": []}}, ".scaleUp.policies: Required value: must specify at …"),
]


async def test_table(api: Api) -> None:
    await HORIZONTAL_POD_AUTOSCALERS.check(api, DEFAULTS, REFUSED, [])
