"""ResourceSlices: refused values with their causes, as a v1.36 server answers."""

from tests.kit.api import Api
from tests.kit.kinds import Kind, Row

RESOURCE_SLICES = Kind(
    "/apis/resource.k8s.io/v1/resourceslices",
    {
        "spec": {
            "driver": "d.x",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "nodeName": "n",
            "devices": [{"name": "d", "allowMultipleAllocations": True, "capacity": {"c": {"value": "10"}}}],
        }
    },
)
REFUSED: list[Row] = [
    ("spec.devices[0].attributes", {"a": {}}, '[a]: Invalid value: "": exactly one value must be specified'),
    (
        "spec.devices[0].attributes",
        {"a": {"int": 1, "bool": True}},
        "[a]: Invalid value: "
        '{"IntValue":1,"BoolValue":true,"StringValue":null,"VersionValue":null,"IntValues":null,"BoolValu'
        'es":null,"StringValues":null,"VersionValues":null}: exactly one value must be specified',
    ),
    (
        "spec.devices[0].attributes",
        {"a": {"version": "1"}},
        '[a].version: Invalid value: "1": must be a string compatible with semver.org spec 2.0.0',
    ),
    (
        "spec.devices[0].attributes",
        {"a": {"string": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}},
        "[a].string: Too long: may not be more than 64 bytes",
    ),
    ("spec.devices[0].attributes", {"/a": {"int": 1}}, 'Invalid value: "": the domain must not be empty'),
    (
        "spec.devices[0].taints",
        [{"key": "k", "effect": "X"}],
        '[0].effect: Unsupported value: "X": supported values: "NoExecute", "NoSchedule", "None"',
    ),
    (
        "spec.devices[0].bindingConditions",
        ["b"],
        "spec.devices[0].bindingFailureConditions: Invalid value: null: bindingFailureConditions are "
        "required to use bindingConditions",
    ),
    (
        "spec.devices[0].allNodes",
        True,
        "spec.devices[0]: Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can only be set "
        "if `perDeviceNodeSelection` is set to true in the ResourceSlice spec",
    ),
    ("spec.devices[0].consumesCounters", [{"counterSet": "s"}], "[0].counters: Required value"),
    (
        "spec.devices[0].consumesCounters",
        [{"counterSet": "s", "counters": {"A": {"value": "1"}}}],
        '[0].counters: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case '
        "alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. "
        "'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
    ),
    (
        "spec+",
        {
            "sharedCounters": [
                {"name": "s", "counters": {"a": {"value": "1"}}},
                {"name": "s", "counters": {"a": {"value": "1"}}},
            ],
            "devices": None,
        },
        '.sharedCounters[1]: Duplicate value: "s"',
    ),
    (
        "spec+",
        {"perDeviceNodeSelection": True, "nodeName": None, "devices": [{"name": "d"}]},
        ".devices[0]: Required value: exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required "
        "when `perDeviceNodeSelection` is set to true in the ResourceSlice spec",
    ),
    (
        "spec+",
        {
            "perDeviceNodeSelection": True,
            "devices": [{"name": "d", "nodeName": "", "allNodes": True}],
            "nodeName": None,
        },
        '.devices[0].nodeName: Invalid value: "": must not be empty',
    ),
    (
        "spec+",
        {
            "nodeSelector": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
                    {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
                ]
            },
            "nodeName": None,
            "devices": None,
        },
        ".nodeSelector.nodeSelectorTerms: Invalid value: "
        '[{"MatchExpressions":[{"Key":"a","Operator":"Exists","Values":null}],"MatchFields":null},{"Match'
        'Expressions":[{"Key":"a","Operator":"Exists","Values":null}],"MatchFields":null}]: must have '
        "exactly one node selector term",
    ),
    (
        "spec.devices[0].capacity.c.requestPolicy",
        {"validValues": ["1", "2"]},
        "spec.devices[0].capacity[c].requestPolicy.default: Required value: required when validValues is defined",
    ),
    (
        "spec.devices[0].capacity.c.requestPolicy",
        {"validValues": ["2", "1"], "default": "1"},
        'spec.devices[0].capacity[c].requestPolicy.validValues[1]: Invalid value: "1": values must be '
        "sorted in ascending order",
    ),
    (
        "spec.devices[0].capacity.c.requestPolicy",
        {"validValues": ["1"], "default": "2"},
        'spec.devices[0].capacity[c].requestPolicy.validValues: Invalid value: "2": default value is not '
        "valid according to the requestPolicy",
    ),
    (
        "spec.devices[0].capacity.c.requestPolicy",
        {"validRange": {"min": "1", "max": "11"}, "default": "1"},
        'spec.devices[0].capacity[c].requestPolicy.validRange.max: Invalid value: "11": max is larger than '
        "capacity value: 10",
    ),
    (
        "spec.devices[0].capacity.c.requestPolicy",
        {"validRange": {"min": "1", "step": "2"}, "default": "4"},
        'spec.devices[0].capacity[c].requestPolicy.validRange.step: Invalid value: "4": value is not a '
        "multiple of a given step (2) from (1)",
    ),
    (
        "spec.devices[0].capacity.c.requestPolicy",
        {"validRange": {"min": "1"}, "validValues": ["1"], "default": "1"},
        "spec.devices[0].capacity[c].requestPolicy: Forbidden: exactly one policy can be specified, cannot "
        'specify "validValues" and "validRange" at the same time',
    ),
]


async def test_table(api: Api) -> None:
    await RESOURCE_SLICES.check(api, {}, REFUSED, [])
