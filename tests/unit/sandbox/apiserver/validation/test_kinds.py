"""A typical error of each kind without a table in ``kinds``: path and text."""

from typing import Any

import pytest

from tests.unit.sandbox.apiserver.strategy import kit

_RBAC, _STORAGE, _NETWORK = "rbac.authorization.k8s.io", "storage.k8s.io", "networking.k8s.io"
_REF = {"apiGroup": _RBAC, "kind": "Role", "name": "r"}
_HOOK = {
    "name": "a.b.c",
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "clientConfig": {"url": "https://h/p"},
    "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
}
_FQDN = "should be a domain with at least three segments separated by dots"


def _case(resource: Any, body: kit.Tree, *expected: str, id: str) -> Any:
    return pytest.param(resource, body, list(expected), id=id)


def _cluster(group: str, plural: str) -> Any:
    return kit.info(group, plural, "K", namespaced=False)


_DOCKER = "kubernetes.io/dockerconfigjson"
_HIDDEN = 'data[.dockerconfigjson]: Invalid value: "<secret contents redacted>"'

CASES = [
    _case(
        kit.info("", "secrets", "Secret"),
        {"type": _DOCKER, "data": {".dockerconfigjson": "ew=="}},
        f"{_HIDDEN}: unexpected end of JSON input",
        id="secret-whose-json-ends-early",
    ),
    _case(
        kit.info("", "secrets", "Secret"),
        {"type": _DOCKER, "data": {".dockerconfigjson": "W10="}},
        f"{_HIDDEN}: json: cannot unmarshal array into Go value of type map[string]interface {{}}",
        id="secret-with-a-list",
    ),
    _case(
        _cluster("flowcontrol.apiserver.k8s.io", "flowschemas"),
        {
            "metadata": kit.meta(name="exempt"),
            "spec": {"priorityLevelConfiguration": {"name": "exempt"}, "matchingPrecedence": 7},
        },
        'spec: Invalid value: {"PriorityLevelConfiguration":{"Name":"exempt"},"MatchingPrecedence":7,'
        '"DistinguisherMethod":null,"Rules":null}: spec of \'exempt\' must equal the fixed value',
        id="mandatory-flow-schema",
    ),
    _case(
        kit.info(_RBAC, "roles", "Role"),
        {"rules": [{"verbs": ["get"]}]},
        "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
        "rules[0].resources: Required value: resource rules must supply at least one resource",
        id="role",
    ),
    _case(
        kit.info(_RBAC, "rolebindings", "RoleBinding"),
        {"roleRef": _REF, "subjects": [{"kind": "Robot", "name": "x"}]},
        'subjects[0].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group"',
        id="binding",
    ),
    _case(
        _cluster(_STORAGE, "storageclasses"),
        {"provisioner": "p", "reclaimPolicy": "Recycle"},
        'reclaimPolicy: Unsupported value: "Recycle": supported values: "Delete", "Retain"',
        id="storage-class",
    ),
    _case(
        _cluster(_STORAGE, "csinodes"),
        {"spec": {"drivers": [{"name": "d"}]}},
        "spec.drivers[0].nodeID: Required value",
        id="csi-node",
    ),
    _case(
        _cluster("scheduling.k8s.io", "priorityclasses"),
        {"value": 2_000_000_000},
        "value: Forbidden: maximum allowed value of a user defined priority is 1000000000",
        id="priority",
    ),
    _case(
        kit.info(_NETWORK, "networkpolicies", "NetworkPolicy"),
        {"spec": {"podSelector": {}, "ingress": [{"from": [{}]}]}},
        "spec.ingress[0].from[0]: Required value: must specify a peer",
        id="network-policy",
    ),
    _case(
        kit.info("discovery.k8s.io", "endpointslices", "EndpointSlice"),
        {"addressType": "IPv4", "endpoints": [{"addresses": ["::1"]}]},
        'endpoints[0].addresses: Invalid value: "::1": must be an IPv4 address',
        'endpoints[0].addresses[0]: Invalid value: "::1": may not be in the loopback range (127.0.0.0/8, ::1/128)',
        id="slice",
    ),
    _case(
        kit.info("", "limitranges", "LimitRange"),
        {"spec": {"limits": [{"type": "Pod", "min": {"cpu": "2"}, "max": {"cpu": "1"}}]}},
        'spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1',
        id="limits",
    ),
    _case(
        kit.info("", "resourcequotas", "ResourceQuota"),
        {"spec": {"hard": {"memory": "1Gi"}, "scopes": ["BestEffort"]}},
        'spec.scopes: Invalid value: ["BestEffort"]: unsupported scope applied to resource',
        id="quota",
    ),
    _case(
        _cluster("", "nodes"),
        {"spec": {"taints": [{"key": "k", "effect": "Odd"}]}},
        'metadata.taints[0].effect: Unsupported value: "Odd": '
        'supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
        id="node",
    ),
    _case(
        kit.info("", "events", "Event"),
        {"involvedObject": {"namespace": "other"}},
        'involvedObject.namespace: Invalid value: "other": does not match event.namespace',
        id="event",
    ),
    _case(
        _cluster("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
        {"webhooks": [_HOOK | {"name": "short"}]},
        f'webhooks[0].name: Invalid value: "short": {_FQDN}',
        id="webhook",
    ),
    _case(
        _cluster("flowcontrol.apiserver.k8s.io", "flowschemas"),
        {"spec": {"matchingPrecedence": 1, "priorityLevelConfiguration": {"name": "l"}}},
        "spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1",
        id="flow",
    ),
    _case(
        kit.info("coordination.k8s.io", "leases", "Lease"),
        {"spec": {"leaseDurationSeconds": 0}},
        "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
        id="lease",
    ),
    _case(
        kit.info("apps", "controllerrevisions", "ControllerRevision"),
        {"revision": 1},
        "data: Required value: data is mandatory",
        id="revision",
    ),
    _case(_cluster("node.k8s.io", "runtimeclasses"), {"handler": ""}, "handler: Required value", id="runtime-class"),
    _case(
        _cluster("certificates.k8s.io", "certificatesigningrequests"),
        {"spec": {"usages": ["any"], "signerName": "a.b/c"}},
        "spec.request: Invalid value: null: PEM block type must be CERTIFICATE REQUEST",
        id="no-certificate-request",
    ),
    _case(
        _cluster("certificates.k8s.io", "certificatesigningrequests"),
        {"spec": {"request": "eA==", "usages": ["any"], "signerName": "a.b/c"}},
        'spec.request: Invalid value: "eA==": PEM block type must be CERTIFICATE REQUEST',
        id="certificate",
    ),
    _case(
        kit.info("resource.k8s.io", "resourceclaims", "ResourceClaim"),
        {"spec": {"devices": {"requests": [{"name": "r"}]}}},
        "spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required",
        id="devices",
    ),
]


@pytest.mark.parametrize(("resource", "body", "expected"), CASES)
def test_a_typical_fault(resource, body, expected):
    doc = {"metadata": kit.meta(), **body}
    if not resource.namespaced:
        del doc["metadata"]["namespace"]
    assert kit.problems(resource, doc) == expected


@pytest.mark.parametrize(
    ("resource", "change", "expected"),
    [
        pytest.param(
            _cluster("", "nodes"),
            {"spec__providerID": "b"},
            'spec.providerID: Forbidden: node updates may not change providerID except from "" to valid',
            id="provider",
        ),
        pytest.param(
            _cluster("", "nodes"),
            {"spec__podCIDRs": ["10.2.0.0/24"], "spec__podCIDR": "10.2.0.0/24"},
            'spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid',
            id="blocks",
        ),
    ],
)
def test_what_nodes_keep(resource, change, expected):
    doc = {"metadata": kit.meta(), "spec": {"providerID": "a", "podCIDR": "10.1.0.0/24"}}
    del doc["metadata"]["namespace"]
    old = kit.stored(resource, doc)
    assert kit.update_problems(resource, old, kit.changed(old, **change)) == [expected]
