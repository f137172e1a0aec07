"""The errors of pods, with upstream's texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.sandbox.apiserver.strategy import kit

_LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_HANDLERS = {"httpGet": {"port": 80}, "tcpSocket": {"port": 80}}
_BOTH = {"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}}
_C = "spec.containers[0]"

CONTAINERS = [
    pytest.param({"name": "A"}, [f'{_C}.name: Invalid value: "A": {_LABEL}'], id="name"),
    pytest.param({"image": ""}, [f"{_C}.image: Required value"], id="image"),
    pytest.param(
        {"image": " i"},
        [f'{_C}.image: Invalid value: " i": must not have leading or trailing whitespace'],
        id="image-padding",
    ),
    pytest.param(
        {"imagePullPolicy": "Now"},
        [f'{_C}.imagePullPolicy: Unsupported value: "Now": supported values: "Always", "IfNotPresent", "Never"'],
        id="pull-policy",
    ),
    pytest.param(
        {"ports": [{"containerPort": 0}, {"containerPort": 70000}]},
        [
            f"{_C}.ports[0].containerPort: Required value",
            f"{_C}.ports[1].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
        ],
        id="ports",
    ),
    pytest.param(
        {"volumeMounts": [{"name": "v", "mountPath": "/x"}]},
        [f'{_C}.volumeMounts[0].name: Not found: "v"'],
        id="unknown-volume",
    ),
    pytest.param(
        {"livenessProbe": _HANDLERS},
        [f"{_C}.livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type"],
        id="two-handlers",
    ),
    pytest.param(
        {"livenessProbe": {**_HANDLERS, "tcpSocket": None, "successThreshold": 2}},
        [f"{_C}.livenessProbe.successThreshold: Invalid value: 2: must be 1"],
        id="liveness-succeeds-once",
    ),
    pytest.param(
        {"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}},
        [f'{_C}.resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'],
        id="request-above-limit",
    ),
    pytest.param(
        {"env": [{"name": "A", "valueFrom": {}}]},
        [
            f'{_C}.env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, '
            "`configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        ],
        id="value-from-nothing",
    ),
    pytest.param(
        {"restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}]},
        [f"{_C}.restartPolicy: Required value: must specify restartPolicy when restart rules are used"],
        id="rules-without-policy",
    ),
    pytest.param(
        {"securityContext": {"procMount": "Unmasked"}},
        [f'{_C}.securityContext.procMount: Invalid value: "Unmasked": `hostUsers` must be false to use `Unmasked`'],
        id="unmasked",
    ),
]

SPECS = [
    pytest.param({"containers": []}, ["spec.containers: Required value"], id="no-containers"),
    pytest.param(
        {"restartPolicy": "Maybe"},
        ['spec.restartPolicy: Unsupported value: "Maybe": supported values: "Always", "OnFailure", "Never"'],
        id="restart-policy",
    ),
    pytest.param(
        {"dnsPolicy": "None"},
        ["spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"],
        id="dns-none",
    ),
    pytest.param(
        {"dnsPolicy": "None", "dnsConfig": {}},
        [
            "spec.dnsConfig.nameservers: Required value: "
            "must provide at least one DNS nameserver when `dnsPolicy` is None"
        ],
        id="dns-none-without-servers",
    ),
    pytest.param(
        {"volumes": [_BOTH]},
        ["spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"],
        id="two-sources",
    ),
    pytest.param({"volumes": [{"name": "v"}]}, [], id="no-source-is-an-empty-dir"),
    pytest.param(
        {"hostPID": True, "shareProcessNamespace": True},
        [
            "spec.securityContext.shareProcessNamespace: Invalid value: true: "
            "ShareProcessNamespace and HostPID cannot both be enabled"
        ],
        id="shared-processes",
    ),
    pytest.param(
        {"activeDeadlineSeconds": 0},
        ["spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"],
        id="deadline",
    ),
    pytest.param(
        {"nodeName": "n", "schedulingGates": [{"name": "g"}]},
        ["spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"],
        id="gated-with-node",
    ),
    pytest.param(
        {"initContainers": [{"name": "c", "image": "i"}]},
        ['spec.initContainers[0].name: Duplicate value: "c"'],
        id="init-name",
    ),
    pytest.param(
        {"initContainers": [{"name": "d", "image": "i", "lifecycle": {"preStop": {"sleep": {"seconds": 1}}}}]},
        [
            "spec.initContainers[0].lifecycle: Forbidden: "
            "may not be set for init containers without restartPolicy=Always"
        ],
        id="init-lifecycle",
    ),
    pytest.param(
        {"ephemeralContainers": [{"name": "e", "image": "i"}]},
        ["spec.ephemeralContainers: Forbidden: cannot be set on create"],
        id="ephemeral",
    ),
    pytest.param(
        {"tolerations": [{"operator": "Equal"}]},
        [
            'spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is empty, '
            'which means "match all values and all keys"'
        ],
        id="toleration-without-key",
    ),
    pytest.param(
        {"resourceClaims": [{"name": "r"}]},
        [
            'spec.resourceClaims[0]: Invalid value: {"Name":"r","ResourceClaimName":null,'
            '"ResourceClaimTemplateName":null}: must specify one of: `resourceClaimName`, '
            "`resourceClaimTemplateName`"
        ],
        id="claim-of-nothing",
    ),
]


@pytest.mark.parametrize(("container", "expected"), CONTAINERS)
def test_containers(container, expected):
    container = {key: _without_none(value) for key, value in container.items()}
    assert kit.problems(kit.PODS, kit.pod(container=container)) == expected


def _without_none(value):
    return {k: v for k, v in value.items() if v is not None} if isinstance(value, dict) else value


@pytest.mark.parametrize(("spec", "expected"), SPECS)
def test_specs(spec, expected):
    assert kit.problems(kit.PODS, kit.pod(spec)) == expected


@pytest.mark.parametrize(
    ("value", "good"),
    [
        pytest.param("-5", True, id="negative"),
        pytest.param("0", True, id="zero"),
        pytest.param("007", False, id="leading-zeros"),
        pytest.param("+1", False, id="plus"),
        pytest.param("2147483648", False, id="too-large"),
    ],
)
def test_deletion_cost(value, good):
    key = "controller.kubernetes.io/pod-deletion-cost"
    found = kit.problems(kit.PODS, kit.pod(annotations={key: value}))
    expected = f'metadata.annotations[{key}]: Invalid value: "{value}": must be a 32bit integer'
    assert found == ([] if good else [expected])


@given(st.integers(-10, 70010))
def test_a_port_is_a_port_or_is_named_in_the_refusal(number):
    found = kit.problems(kit.PODS, kit.pod(container={"ports": [{"containerPort": number}]}))
    assert bool(found) is not (1 <= number <= 65535)
    assert all(text.startswith("spec.containers[0].ports[0].containerPort: ") for text in found)
