"""PodDisruptionBudgets: defaults, and refused values with their causes, as a v1.36 server answers."""

from typing import Any

from tests.kit.api import Api
from tests.kit.kinds import Kind, Row

POD_DISRUPTION_BUDGETS = Kind(
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
    {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}},
)
DEFAULTS: dict[str, Any] = {
    "spec.minAvailable": 1,
}
REFUSED: list[Row] = [
    ("spec.minAvailable", -1, "Invalid value: -1: must be greater than or equal to 0"),
    ("spec.minAvailable", "x", 'Invalid value: "x": a valid percent string must be a numeric string followed by …'),
    ("spec.minAvailable", "101%", 'Invalid value: "101%": must not be greater than 100%'),
    ("spec.maxUnavailable", 1, 'spec: Invalid value: {"MinAvailable":1,"Selector":{"matchLabels":{"app":"a"}},"M…'),
    (
        "spec.selector",
        {"matchLabels": {"a b": "c"}},
        ".matchLabels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or …",
    ),
    ("spec.unhealthyPodEvictionPolicy", "Never", 'Unsupported value: "Never": supported values: "AlwaysAllow", "…'),
]


async def test_table(api: Api) -> None:
    await POD_DISRUPTION_BUDGETS.check(api, DEFAULTS, REFUSED, [])
