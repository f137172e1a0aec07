"""Jobs: defaults, and refused values with their causes, as a v1.36 server answers."""

from typing import Any

from tests.kit.api import Api
from tests.kit.kinds import Kind, Row

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
REFUSED: list[Row] = [
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
    ("spec.podReplacementPolicy", "Later", 'Unsupported value: "Later": supported values: "Failed", "Terminating…'),
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
        '.rules[0].action: Unsupported value: "Stop": supported values: "Count", "FailIndex", "FailJob", "Ig…',
    ),
    (
        "spec.podFailurePolicy",
        {"rules": [{"action": "Ignore"}]},
        ".rules[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required",
    ),
    (
        "spec.podFailurePolicy",
        {"rules": [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [0]}}]},
        ".rules[0].onExitCodes.values[0]: Invalid value: 0: must not be 0 for the In operator",
    ),
    (
        "spec.successPolicy",
        {"rules": [{"succeededCount": 1}]},
        'Invalid value: {"Rules":[{"SucceededIndexes":null,"SucceededCount":1}]}: requires indexed …',
    ),
    ("spec.managedBy", "a b", 'Invalid value: "a b": must be a domain-prefixed path (such as "acme.io/foo")'),
    (
        "spec+",
        {"completionMode": "Indexed", "parallelism": 1},
        ".completions: Required value: when completion mode is Indexed",
    ),
    (
        "spec+",
        {"podFailurePolicy": {"rules": [{"action": "Ignore"}]}, "podReplacementPolicy": "Failed"},
        ".podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required",
    ),
]
KEPT: list[Row] = [
    ("spec.completions", 3, "Invalid value: 3: field is immutable"),
    ("spec.completionMode", "Indexed", 'Invalid value: "Indexed": field is immutable'),
    ("spec.template.spec.containers[0].image", "j", 'spec.template: Invalid value: {"labels":{"batch.kubernetes.…'),
]


async def test_table(api: Api) -> None:
    await JOBS.check(api, DEFAULTS, REFUSED, KEPT)
