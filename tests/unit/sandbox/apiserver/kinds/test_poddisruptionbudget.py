"""PodDisruptionBudgets: defaults, and refused values with their causes, as a v1.36 server answers."""

from typing import Any

from tests.kit.api import Api
from tests.kit.kinds import Causes, Kind, rows

POD_DISRUPTION_BUDGETS = Kind(
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
    {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}},
)
DEFAULTS: dict[str, Any] = {
    "spec.minAvailable": 1,
}
REFUSED = [
    ("spec.minAvailable", -1, "Invalid value: -1: must be greater than or equal to 0"),
    ("spec.minAvailable", "x", 'Invalid value: "x": a valid percent string must be a numeric string followed by an…'),
    ("spec.minAvailable", "101%", 'Invalid value: "101%": must not be greater than 100%'),
    ("spec.maxUnavailable", 1, 'spec: Invalid value: {"MinAvailable":1,"Selector":{"matchLabels":{"app":"a"}},"MaxUn…'),
    ("spec.selector", {"matchLabels": {"a b": "c"}}, 'spec.selector.matchLabels: Invalid value: "a b": name part mus…'),
    ("spec.unhealthyPodEvictionPolicy", "Never", 'Unsupported value: "Never": supported values: "AlwaysAllow", "IfHe…'),
]


async def test_defaults(api: Api) -> None:
    assert await POD_DISRUPTION_BUDGETS.created(api, *DEFAULTS) == DEFAULTS


@rows(REFUSED)
async def test_refused_values(api: Api, field: str, value: Any, causes: Causes) -> None:
    assert await POD_DISRUPTION_BUDGETS.refusal(api, field, value, causes) == causes
