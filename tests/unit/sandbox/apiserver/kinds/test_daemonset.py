"""DaemonSets: defaults, and refused values with their causes, as a v1.36 server answers."""

from typing import Any

from tests.kit.api import Api
from tests.kit.kinds import Kind, Row

DAEMON_SETS = Kind(
    "/apis/apps/v1/namespaces/default/daemonsets",
    {
        "spec": {
            "selector": {"matchLabels": {"app": "a"}},
            "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        }
    },
)
DEFAULTS: dict[str, Any] = {
    "spec.updateStrategy.type": "RollingUpdate",
    "spec.updateStrategy.rollingUpdate.maxUnavailable": 1,
    "spec.updateStrategy.rollingUpdate.maxSurge": 0,
    "spec.revisionHistoryLimit": 10,
    "metadata.annotations": {"deprecated.daemonset.template.generation": "1"},
}
REFUSED: list[Row] = [
    ("spec.selector", {}, "Invalid value: {}: empty selector is invalid for daemonset"),
    ("spec.selector.matchLabels", {"app": "b"}, 'spec.template.metadata.labels: Invalid value: {"app":"a"}: `sel…'),
    ("spec.updateStrategy", {"type": "Fast"}, 'Unsupported value: {"Type":"Fast","RollingUpdate":null}: …'),
    (
        "spec.updateStrategy",
        {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0}},
        ".rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0",
    ),
    (
        "spec.updateStrategy",
        {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}},
        ".rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero",
    ),
    ("spec.minReadySeconds", -1, "Invalid value: -1: must be greater than or equal to 0"),
    ("spec.revisionHistoryLimit", -1, "Invalid value: -1: must be greater than or equal to 0"),
    ("spec.template.spec.restartPolicy", "Never", 'Unsupported value: "Never": supported values: "Always"'),
    ("spec.template.spec.activeDeadlineSeconds", 5, "Forbidden: activeDeadlineSeconds in DaemonSet is not Supported"),
]
KEPT: list[Row] = [
    (
        "spec.selector.matchLabels",
        {"app": "b"},
        [
            'spec.selector: Invalid value: {"matchLabels":{"app":"b"}}: field is immutable',
            'spec.template.metadata.labels: Invalid value: {"app":"a"}: `selector` does not match template `labe…',
        ],
    ),
]


async def test_table(api: Api) -> None:
    await DAEMON_SETS.check(api, DEFAULTS, REFUSED, KEPT)
