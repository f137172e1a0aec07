"""Jobs: defaults, and refused values with their causes, as a v1.36 server answers."""

from typing import Any

from tests.kit.api import Api
from tests.kit.kinds import Causes, Kind, rows

JOBS = Kind(
    "/apis/batch/v1/namespaces/default/jobs",
    {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}},
)
DEFAULTS: dict[str, Any] = {
    "spec.completions": 1,
    "spec.parallelism": 1,
    "spec.backoffLimit": 6,
    "spec.completionMode": "NonIndexed",
    "spec.suspend": False,
    "spec.podReplacementPolicy": "TerminatingOrFailed",
    "spec.manualSelector": False,
}
REFUSED = [
    ("spec.parallelism", -1, "Invalid value: -1: must be greater than or equal to 0"),
    ("spec.completions", -1, "Invalid value: -1: must be greater than or equal to 0"),
    ("spec.backoffLimit", -1, "Invalid value: -1: must be greater than or equal to 0"),
    ("spec.activeDeadlineSeconds", -1, "Invalid value: -1: must be greater than or equal to 0"),
    ("spec.ttlSecondsAfterFinished", -1, "Invalid value: -1: must be greater than or equal to 0"),
    ("spec.completionMode", "Random", 'Unsupported value: "Random": supported values: "NonIndexed", "Indexed"'),
    ("spec.backoffLimitPerIndex", 1, "Invalid value: 1: requires indexed completion mode"),
    (
        "spec.maxFailedIndexes",
        1,
        [
            "spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified",
            "Invalid value: 1: requires indexed completion mode",
        ],
    ),
    ("spec.podReplacementPolicy", "Later", 'Unsupported value: "Later": supported values: "Failed", "TerminatingOrFa…'),
    ("spec.template.spec.restartPolicy", "Always", 'Required value: valid values: "OnFailure", "Never"'),
    ("spec.template.spec.restartPolicy", "", 'Required value: valid values: "OnFailure", "Never"'),
    ("spec.template.spec.containers", [], "Required value"),
    (
        "spec.manualSelector",
        True,
        [
            "spec.selector: Required value",
            "spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`",
        ],
    ),
    (
        "spec.podFailurePolicy",
        {"rules": [{"action": "Stop", "onPodConditions": [{"type": "A", "status": "True"}]}]},
        'spec.podFailurePolicy.rules[0].action: Unsupported value: "Stop": supported values: "Count", "FailIndex…',
    ),
    (
        "spec.podFailurePolicy",
        {"rules": [{"action": "Ignore"}]},
        "spec.podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is req…",
    ),
    (
        "spec.podFailurePolicy",
        {"rules": [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [0]}}]},
        "spec.podFailurePolicy.rules[0].onExitCodes.values[0]: Invalid value: 0: must not be 0 for the In operat…",
    ),
    (
        "spec.successPolicy",
        {"rules": [{"succeededCount": 1}]},
        'Invalid value: {"Rules":[{"SucceededIndexes":null,"SucceededCount":1}]}: requires indexed completion mo…',
    ),
    ("spec.managedBy", "a b", 'Invalid value: "a b": must be a domain-prefixed path (such as "acme.io/foo")'),
]
UNCHANGEABLE = [
    ("spec.completions", 3, "Invalid value: 3: field is immutable"),
    ("spec.completionMode", "Indexed", 'Invalid value: "Indexed": field is immutable'),
    ("spec.template.spec.containers[0].image", "j", 'spec.template: Invalid value: {"labels":{"batch.kubernetes.io/c…'),
]


async def test_defaults(api: Api) -> None:
    assert await JOBS.created(api, *DEFAULTS) == DEFAULTS


@rows(REFUSED)
async def test_refused_values(api: Api, field: str, value: Any, causes: Causes) -> None:
    assert await JOBS.refusal(api, field, value, causes) == causes


@rows(UNCHANGEABLE)
async def test_refused_changes(api: Api, field: str, value: Any, causes: Causes) -> None:
    assert await JOBS.refused_change(api, field, value, causes) == causes
