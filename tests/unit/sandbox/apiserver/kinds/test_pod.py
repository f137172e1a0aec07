"""Pods: defaults, and refused values with their causes, as a v1.36 server answers."""

from typing import Any

from tests.kit.api import Api
from tests.kit.kinds import Causes, Kind, rows

PODS = Kind("/api/v1/namespaces/default/pods", {"spec": {"containers": [{"name": "c", "image": "i"}]}})
DEFAULTS: dict[str, Any] = {
    "spec.restartPolicy": "Always",
    "spec.dnsPolicy": "ClusterFirst",
    "spec.schedulerName": "default-scheduler",
    "spec.terminationGracePeriodSeconds": 30,
    "spec.enableServiceLinks": True,
    "spec.preemptionPolicy": "PreemptLowerPriority",
    "spec.priority": 0,
    "spec.serviceAccountName": "default",
    "spec.securityContext": {},
    "spec.containers[0].imagePullPolicy": "Always",
    "spec.containers[0].terminationMessagePath": "/dev/termination-log",
    "spec.containers[0].terminationMessagePolicy": "File",
    "spec.containers[0].resources": {},
    "spec.tolerations[0].key": "node.kubernetes.io/not-ready",
    "spec.tolerations[0].tolerationSeconds": 300,
    "status.phase": "Pending",
    "status.qosClass": "BestEffort",
}
REFUSED = [
    ("spec.containers", [], "Required value"),
    ("spec.containers[0].name", "C", 'Invalid value: "C": a lowercase RFC 1123 label must consist of lower case alph…'),
    ("spec.containers[0].name", "", "Required value"),
    ("spec.containers[0].image", "", "Required value"),
    ("spec.containers[0].image", " i", 'Invalid value: " i": must not have leading or trailing whitespace'),
    (
        "spec.containers[0].imagePullPolicy",
        "Sometimes",
        'Unsupported value: "Sometimes": supported values: "Always", "IfNotPresent", "Never"',
    ),
    (
        "spec.containers[0].terminationMessagePolicy",
        "None",
        'Unsupported value: "None": supported values: "File", "FallbackToLogsOnError"',
    ),
    ("spec.containers[0].ports", [{"containerPort": 0}], "spec.containers[0].ports[0].containerPort: Required value"),
    (
        "spec.containers[0].ports",
        [{"containerPort": 80, "protocol": "HTTP"}],
        'spec.containers[0].ports[0].protocol: Unsupported value: "HTTP": supported values: "SCTP", "TCP", "UDP"',
    ),
    ("spec.containers[0].env", [{"name": ""}], "spec.containers[0].env[0].name: Required value"),
    (
        "spec.containers[0].env",
        [{"name": "A", "value": "a", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        'spec.containers[0].env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty',
    ),
    (
        "spec.containers[0].resources",
        {"limits": {"cpu": "-1"}},
        [
            'spec.containers[0].resources.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0',
            'spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to…',
        ],
    ),
    (
        "spec.containers[0].resources",
        {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}},
        'spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
    ),
    (
        "spec.containers[0].livenessProbe",
        {"tcpSocket": {"port": 0}},
        "spec.containers[0].livenessProbe.tcpSocket.port: Invalid value: 0: must be between 1 and 65535, inclusi…",
    ),
    ("spec.containers[0].livenessProbe", {"periodSeconds": 5}, "Required value: must specify a handler type"),
    (
        "spec.containers[0].volumeMounts",
        [{"name": "no", "mountPath": "/m"}],
        'spec.containers[0].volumeMounts[0].name: Not found: "no"',
    ),
    ("spec.containers[0].lifecycle", {"preStop": {}}, "spec.containers[0].lifecycle.preStop: Required value: must sp…"),
    ("spec.restartPolicy", "Sometimes", 'Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "N…'),
    ("spec.dnsPolicy", "Mine", 'Unsupported value: "Mine": supported values: "ClusterFirstWithHostNet", "ClusterFirs…'),
    (
        "spec",
        {
            "hostNetwork": True,
            "containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 81}]}],
        },
        "spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork`…",
    ),
    ("spec.activeDeadlineSeconds", 0, "Invalid value: 0: must be between 1 and 2147483647, inclusive"),
    ("spec.nodeSelector", {"a b": "c"}, 'Invalid value: "a b": name part must consist of alphanumeric characte…'),
    ("spec.hostname", "a.b", 'Invalid value: "a.b": must not contain dots'),
    ("spec.hostAliases", [{"ip": "x"}], 'spec.hostAliases[0].ip: Invalid value: "x": must be a valid IP address, (e.…'),
    (
        "spec.tolerations",
        [{"operator": "Exists", "value": "v", "key": "k"}],
        "spec.tolerations[0].operator: Invalid value: \"v\": value must be empty when `operator` is 'Exists'",
    ),
    (
        "spec.tolerations",
        [{"key": "k", "operator": "Equal", "effect": "NoSchedule", "tolerationSeconds": 1}],
        "spec.tolerations[0].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when `tolerationS…",
    ),
    ("spec.volumes", [{"name": "v"}, {"name": "v", "emptyDir": {}}], 'spec.volumes[1].name: Duplicate value: "v"'),
    (
        "spec.volumes",
        [{"name": "v", "emptyDir": {}, "configMap": {"name": "m"}}],
        "spec.volumes[0].configMap: Forbidden: may not specify more than 1 volume type",
    ),
    (
        "spec.topologySpreadConstraints",
        [{"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}],
        "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
    ),
    (
        "spec.readinessGates",
        [{"conditionType": "a b"}],
        'spec.readinessGates[0].conditionType: Invalid value: "a b": name part must consist of alphanumeric char…',
    ),
    ("metadata.name", "Upper", 'Invalid value: "Upper": a lowercase RFC 1123 subdomain must consist of lower case al…'),
    ("metadata.labels", {"a": "b c"}, 'Invalid value: "b c": a valid label must be an empty string or consist of al…'),
]
UNCHANGEABLE = [
    ("spec.nodeName", "n", "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`…"),
    ("spec.restartPolicy", "Never", "spec: Forbidden: pod updates may not change fields other than `spec.containers[…"),
    ("spec.containers[0].name", "d", "spec: Forbidden: pod updates may not change fields other than `spec.containers…"),
    ("spec.terminationGracePeriodSeconds", 1, "spec: Forbidden: pod updates may not change fields other than `spec.c…"),
]


async def test_defaults(api: Api) -> None:
    assert await PODS.created(api, *DEFAULTS) == DEFAULTS


@rows(REFUSED)
async def test_refused_values(api: Api, field: str, value: Any, causes: Causes) -> None:
    assert await PODS.refusal(api, field, value, causes) == causes


@rows(UNCHANGEABLE)
async def test_refused_changes(api: Api, field: str, value: Any, causes: Causes) -> None:
    assert await PODS.refused_change(api, field, value, causes) == causes
