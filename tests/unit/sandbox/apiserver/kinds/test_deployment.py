"""Deployments: defaults, and refused values with their causes, as a v1.36 server answers."""

from typing import Any

from tests.kit.api import Api
from tests.kit.kinds import Kind, Row

DEPLOYMENTS = Kind(
    "/apis/apps/v1/namespaces/default/deployments",
    {
        "spec": {
            "selector": {"matchLabels": {"app": "a"}},
            "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        }
    },
)
DEFAULTS: dict[str, Any] = {
    "spec.replicas": 1,
    "spec.strategy.type": "RollingUpdate",
    "spec.strategy.rollingUpdate.maxSurge": "25%",
    "spec.strategy.rollingUpdate.maxUnavailable": "25%",
    "spec.revisionHistoryLimit": 10,
    "spec.progressDeadlineSeconds": 600,
    "spec.template.spec.restartPolicy": "Always",
    "spec.template.spec.containers[0].imagePullPolicy": "Always",
    "metadata.generation": 1,
}
REFUSED: list[Row] = [
    ("spec.selector", {}, "Invalid value: {}: empty selector is invalid for deployment"),
    ("spec.selector.matchLabels", {"app": "b"}, 'spec.template.metadata.labels: Invalid value: {"app":"a"}: `sel…'),
    (
        "spec.selector.matchLabels",
        {"a b": "c"},
        [
            "Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must …",
            'spec.selector: Invalid value: {"matchLabels":{"a b":"c"}}: invalid label selector',
        ],
    ),
    (
        "spec.selector",
        {"matchExpressions": [{"key": "app", "operator": "Near", "values": ["a"]}]},
        [
            '.matchExpressions[0].operator: Invalid value: "Near": not a valid selector operator',
            'Invalid value: {"matchExpressions":[{"key":"app","operator":"Near","values":["a"]}]}: invalid …',
        ],
    ),
    ("spec.replicas", -1, "Invalid value: -1: must be greater than or equal to 0"),
    ("spec.minReadySeconds", -1, "Invalid value: -1: must be greater than or equal to 0"),
    ("spec.minReadySeconds", 600, "spec.progressDeadlineSeconds: Invalid value: 600: must be greater than …"),
    (
        "spec.progressDeadlineSeconds",
        -1,
        [
            "Invalid value: -1: must be greater than or equal to 0",
            "Invalid value: -1: must be greater than minReadySeconds",
        ],
    ),
    ("spec.revisionHistoryLimit", -1, "Invalid value: -1: must be greater than or equal to 0"),
    ("spec.strategy", {"type": "Fast"}, 'Unsupported value: {"Type":"Fast","RollingUpdate":null}: supported …'),
    (
        "spec.strategy",
        {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}},
        ".rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
    ),
    (
        "spec.strategy",
        {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}},
        ".rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0",
    ),
    (
        "spec.strategy",
        {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "x"}},
        '.rollingUpdate.maxSurge: Invalid value: "x": a valid percent string must be a numeric string …',
    ),
    (
        "spec.strategy",
        {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "101%"}},
        '.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%',
    ),
    ("spec.template.spec.restartPolicy", "Never", 'Unsupported value: "Never": supported values: "Always"'),
    ("spec.template.spec.containers", [], "Required value"),
    ("spec.template.spec.containers[0].image", "", "Required value"),
    ("spec.template.spec.activeDeadlineSeconds", 5, "Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported"),
    ("spec.template.metadata.labels", {}, "Invalid value: null: `selector` does not match template `labels`"),
]
KEPT: list[Row] = [
    (
        "spec.selector.matchLabels",
        {"app": "b"},
        [
            'spec.template.metadata.labels: Invalid value: {"app":"a"}: `selector` does not match template `labe…',
            'spec.selector: Invalid value: {"matchLabels":{"app":"b"}}: field is immutable',
        ],
    ),
]


async def test_table(api: Api) -> None:
    await DEPLOYMENTS.check(api, DEFAULTS, REFUSED, KEPT)
