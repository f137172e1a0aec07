"""Pods: defaults, and refused values with their causes, as a v1.36 server answers."""

from typing import Any

from tests.kit.api import Api
from tests.kit.kinds import Kind, Row

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
REFUSED: list[Row] = [
    ("spec.containers", [], "Required value"),
    ("spec.containers[0].name", "C", 'Invalid value: "C": a lowercase RFC 1123 label must consist of lower case …'),
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
    ("spec.containers[0].ports", [{"containerPort": 0}], "[0].containerPort: Required value"),
    (
        "spec.containers[0].ports",
        [{"containerPort": 80, "protocol": "HTTP"}],
        '[0].protocol: Unsupported value: "HTTP": supported values: "SCTP", "TCP", "UDP"',
    ),
    ("spec.containers[0].env", [{"name": ""}], "[0].name: Required value"),
    (
        "spec.containers[0].env",
        [{"name": "A", "value": "a", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        '[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty',
    ),
    (
        "spec.containers[0].resources",
        {"limits": {"cpu": "-1"}},
        [
            '.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0',
            '.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0',
        ],
    ),
    (
        "spec.containers[0].resources",
        {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}},
        '.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
    ),
    (
        "spec.containers[0].livenessProbe",
        {"tcpSocket": {"port": 0}},
        ".tcpSocket.port: Invalid value: 0: must be between 1 and 65535, inclusive",
    ),
    ("spec.containers[0].livenessProbe", {"periodSeconds": 5}, "Required value: must specify a handler type"),
    ("spec.containers[0].volumeMounts", [{"name": "no", "mountPath": "/m"}], '[0].name: Not found: "no"'),
    ("spec.containers[0].lifecycle", {"preStop": {}}, ".preStop: Required value: must specify a handler type"),
    ("spec.restartPolicy", "Sometimes", 'Unsupported value: "Sometimes": supported values: "Always", "OnFailure"…'),
    ("spec.dnsPolicy", "Mine", 'Unsupported value: "Mine": supported values: "ClusterFirstWithHostNet", "Cluster…'),
    (
        "spec",
        {
            "hostNetwork": True,
            "containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 81}]}],
        },
        ".containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` …",
    ),
    ("spec.activeDeadlineSeconds", 0, "Invalid value: 0: must be between 1 and 2147483647, inclusive"),
    ("spec.nodeSelector", {"a b": "c"}, 'Invalid value: "a b": name part must consist of alphanumeric …'),
    ("spec.hostname", "a.b", 'Invalid value: "a.b": must not contain dots'),
    ("spec.hostAliases", [{"ip": "x"}], '[0].ip: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 …'),
    (
        "spec.tolerations",
        [{"operator": "Exists", "value": "v", "key": "k"}],
        "[0].operator: Invalid value: \"v\": value must be empty when `operator` is 'Exists'",
    ),
    (
        "spec.tolerations",
        [{"key": "k", "operator": "Equal", "effect": "NoSchedule", "tolerationSeconds": 1}],
        "[0].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when `tolerationSeconds` is set",
    ),
    ("spec.volumes", [{"name": "v"}, {"name": "v", "emptyDir": {}}], '[1].name: Duplicate value: "v"'),
    (
        "spec.volumes",
        [{"name": "v", "emptyDir": {}, "configMap": {"name": "m"}}],
        "[0].configMap: Forbidden: may not specify more than 1 volume type",
    ),
    (
        "spec.topologySpreadConstraints",
        [{"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}],
        "[0].maxSkew: Invalid value: 0: must be greater than zero",
    ),
    (
        "spec.readinessGates",
        [{"conditionType": "a b"}],
        "[0].conditionType: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_…",
    ),
    ("metadata.name", "Upper", 'Invalid value: "Upper": a lowercase RFC 1123 subdomain must consist of lower …'),
    ("metadata.labels", {"a": "b c"}, 'Invalid value: "b c": a valid label must be an empty string or consist …'),
    (
        "spec.containers[0].ports",
        [{"containerPort": 0}, {"containerPort": 70000}],
        [
            "[0].containerPort: Required value",
            "[1].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
        ],
    ),
    (
        "spec.containers[0].livenessProbe",
        {"httpGet": {"port": 80}, "tcpSocket": {"port": 80}},
        ".tcpSocket: Forbidden: may not specify more than 1 handler type",
    ),
    (
        "spec.containers[0].livenessProbe",
        {"httpGet": {"port": 80}, "successThreshold": 2},
        ".successThreshold: Invalid value: 2: must be 1",
    ),
    (
        "spec.containers[0].env",
        [{"name": "A", "valueFrom": {}}],
        '[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, '
        "`configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
    ),
    (
        "spec.containers[0].restartPolicyRules",
        [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}],
        "spec.containers[0].restartPolicy: Required value: must specify restartPolicy when restart rules are used",
    ),
    (
        "spec.containers[0].securityContext",
        {"procMount": "Unmasked"},
        '.procMount: Invalid value: "Unmasked": `hostUsers` must be false to use `Unmasked`',
    ),
    ("spec.dnsPolicy", "None", "spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"),
    (
        "spec+",
        {"dnsPolicy": "None", "dnsConfig": {}},
        ".dnsConfig.nameservers: Required value: must provide at least one DNS nameserver when `dnsPolicy` is None",
    ),
    (
        "spec.volumes",
        [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}}],
        "[0].hostPath: Forbidden: may not specify more than 1 volume type",
    ),
    (
        "spec+",
        {"hostPID": True, "shareProcessNamespace": True},
        ".securityContext.shareProcessNamespace: Invalid value: true: ShareProcessNamespace and HostPID "
        "cannot both be enabled",
    ),
    (
        "spec+",
        {"nodeName": "n", "schedulingGates": [{"name": "g"}]},
        ".nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
    ),
    ("spec.initContainers", [{"name": "c", "image": "i"}], '[0].name: Duplicate value: "c"'),
    (
        "spec.initContainers",
        [{"name": "d", "image": "i", "lifecycle": {"preStop": {"sleep": {"seconds": 1}}}}],
        "[0].lifecycle: Forbidden: may not be set for init containers without restartPolicy=Always",
    ),
    ("spec.ephemeralContainers", [{"name": "e", "image": "i"}], "Forbidden: cannot be set on create"),
    (
        "spec.tolerations",
        [{"operator": "Equal"}],
        '[0].operator: Invalid value: "Equal": operator must be Exists when `key` is empty, which means '
        '"match all values and all keys"',
    ),
    (
        "spec.resourceClaims",
        [{"name": "r"}],
        '[0]: Invalid value: {"Name":"r","ResourceClaimName":null,"ResourceClaimTemplateName":null}: must '
        "specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
    ),
    (
        "spec.securityContext",
        {"seLinuxChangePolicy": "MountOption"},
        '.seLinuxChangePolicy: Unsupported value: "MountOption": supported values: "Recursive"',
    ),
    (
        "spec.volumes",
        [
            {
                "name": "v",
                "ephemeral": {
                    "volumeClaimTemplate": {
                        "metadata": {"uid": "u"},
                        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}},
                    }
                },
            }
        ],
        "[0].ephemeral.volumeClaimTemplate.metadata.uID: Forbidden: cannot be set",
    ),
    (
        "spec+",
        {"os": {"name": "windows"}, "securityContext": {"runAsUser": 0}},
        ".securityContext.runAsUser: Forbidden: cannot be set for a windows pod",
    ),
]
KEPT: list[Row] = [
    ("spec.nodeName", "n", "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].im…"),
    ("spec.restartPolicy", "Never", "spec: Forbidden: pod updates may not change fields other than `spec.contain…"),
    ("spec.containers[0].name", "d", "spec: Forbidden: pod updates may not change fields other than `spec.contai…"),
    ("spec.terminationGracePeriodSeconds", 1, "spec: Forbidden: pod updates may not change fields other than `sp…"),
]


async def test_table(api: Api) -> None:
    await PODS.check(api, DEFAULTS, REFUSED, KEPT)


async def test_a_client_that_does_not_know_the_claims_of_a_status_leaves_them(api: Api) -> None:
    claims = [{"name": "c", "resourceClaimTemplateName": "t"}]
    path = "/api/v1/namespaces/default/pods/p"
    body = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}], "resourceClaims": claims}}
    await api.make(path.removesuffix("/p"), body)
    status = {"resourceClaimStatuses": [{"name": "c", "resourceClaimName": "made"}]}
    await api.json("PATCH", f"{path}/status", {"status": status}, content_type="application/merge-patch+json")
    made = await api.json("GET", path)
    assert (await api.json("PUT", f"{path}/status", {**made, "status": {"phase": "Running"}}))["status"] == {
        **made["status"],
        "phase": "Running",
    }
