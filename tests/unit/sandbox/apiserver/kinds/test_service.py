"""Services: defaults, and refused values with their causes, as a v1.36 server answers."""

from typing import Any

from tests.kit.api import Api
from tests.kit.kinds import Kind, Row

SERVICES = Kind("/api/v1/namespaces/default/services", {"spec": {"ports": [{"port": 80}], "selector": {"app": "a"}}})
DEFAULTS: dict[str, Any] = {
    "spec.type": "ClusterIP",
    "spec.sessionAffinity": "None",
    "spec.internalTrafficPolicy": "Cluster",
    "spec.ipFamilyPolicy": "SingleStack",
    "spec.ipFamilies": ["IPv4"],
    "spec.ports[0].protocol": "TCP",
    "spec.ports[0].targetPort": 80,
}
REFUSED: list[Row] = [
    ("spec.ports", [], "Required value"),
    (
        "spec.ports[0].port",
        0,
        [
            "Invalid value: 0: must be between 1 and 65535, inclusive",
            "spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive",
        ],
    ),
    (
        "spec.ports[0].port",
        65536,
        [
            "Invalid value: 65536: must be between 1 and 65535, inclusive",
            "spec.ports[0].targetPort: Invalid value: 65536: must be between 1 and 65535, inclusive",
        ],
    ),
    ("spec.ports[0].protocol", "HTTP", 'Unsupported value: "HTTP": supported values: "SCTP", "TCP", "UDP"'),
    ("spec.ports[0].targetPort", "a_b", 'Invalid value: "a_b": must contain only alpha-numeric characters (a-z, …'),
    ("spec.ports[0].nodePort", 30000, "Forbidden: may not be used when `type` is 'ClusterIP'"),
    ("spec.ports", [{"port": 80}, {"port": 81}], ["[0].name: Required value", "[1].name: Required value"]),
    (
        "spec.ports",
        [{"port": 80, "name": "a"}, {"port": 80, "name": "b"}],
        '[1]: Duplicate value: {"Name":"","Protocol":"TCP","AppProtocol":null,"Port":80,"TargetPort":0,"Node…',
    ),
    ("spec.ports", [{"port": 80, "name": "a"}, {"port": 81, "name": "a"}], '[1].name: Duplicate value: "a"'),
    ("spec.type", "Mine", 'Unsupported value: "Mine": supported values: "ClusterIP", "ExternalName", "LoadBalanc…'),
    ("spec.type", "ExternalName", "spec.externalName: Required value"),
    ("spec.sessionAffinity", "Cookie", 'Unsupported value: "Cookie": supported values: "ClientIP", "None"'),
    ("spec.clusterIP", "x", 'spec.clusterIPs[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 …'),
    ("spec.clusterIP", "1.2.3.4", 'spec.clusterIPs: Invalid value: ["1.2.3.4"]: failed to allocate IP 1.2.3.4: …'),
    ("spec.externalIPs", ["127.0.0.1"], '[0]: Invalid value: "127.0.0.1": may not be in the loopback range (127.…'),
    ("spec.externalTrafficPolicy", "Local", 'Invalid value: "Local": may only be set for externally-accessible …'),
    ("spec.internalTrafficPolicy", "Near", 'Unsupported value: "Near": supported values: "Cluster", "Local"'),
    ("spec.ipFamilyPolicy", "Both", 'Unsupported value: "Both": supported values: "PreferDualStack", "RequireDua…'),
    ("spec.ipFamilies", ["IPv5"], '[0]: Unsupported value: "IPv5": supported values: "IPv4", "IPv6"'),
    ("spec.healthCheckNodePort", 30001, "Invalid value: 30001: may only be set when `type` is 'LoadBalancer' …"),
    (
        "spec.loadBalancerSourceRanges",
        ["10.0.0.0/8"],
        "spec.LoadBalancerSourceRanges: Forbidden: may only be used when `type` is 'LoadBalancer'",
    ),
    ("spec.loadBalancerClass", "x", "Forbidden: may only be used when `type` is 'LoadBalancer'"),
    ("spec.selector", {"a": "b c"}, 'Invalid value: "b c": a valid label must be an empty string or consist of …'),
    ("metadata.name", "a.b", 'Invalid value: "a.b": must not contain dots'),
    (
        "spec+",
        {"type": "ExternalName", "externalName": "a.b", "internalTrafficPolicy": "x"},
        '.internalTrafficPolicy: Unsupported value: "x": supported values: "Cluster", "Local"',
    ),
]
KEPT: list[Row] = [
    ("spec.clusterIP", "10.0.0.77", 'spec.clusterIPs[0]: Invalid value: ["10.0.0.77"]: may not change once set'),
]


async def test_table(api: Api) -> None:
    await SERVICES.check(api, DEFAULTS, REFUSED, KEPT)
