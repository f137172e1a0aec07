"""The FlowSchemas and PriorityLevelConfigurations that the server keeps: mandatory and suggested ones.

Facts only: the sandbox itself throttles nobody.

upstream: staging/src/k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap/default.go
"""

import msgspec

from kcm_cli.machinery.codec import Doc

_API_VERSION = "flowcontrol.apiserver.k8s.io/v1"
_EVERYONE = ("group:system:unauthenticated", "group:system:authenticated")
_LEADERS = (
    "user:system:kube-controller-manager",
    "user:system:kube-scheduler",
    "sa:kube-system/*",
)
_ALL_RESOURCES: Doc = {
    "verbs": ["*"],
    "apiGroups": ["*"],
    "resources": ["*"],
    "clusterScope": True,
    "namespaces": ["*"],
}
_ALL_URLS: Doc = {"verbs": ["*"], "nonResourceURLs": ["*"]}
_PROBE_URLS: Doc = {"verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"]}
_NODE_OBJECTS: Doc = {
    "verbs": ["*"],
    "apiGroups": [""],
    "resources": ["nodes", "nodes/status"],
    "clusterScope": True,
    "namespaces": ["*"],
}


def _leases(*verbs: str) -> Doc:
    return {
        "verbs": list(verbs),
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "namespaces": ["*"],
    }


class _Level(msgspec.Struct, frozen=True):
    """shares: nominal concurrency; lendable: percent; queues: (queues, hand size, length), None to reject."""

    name: str
    shares: int
    lendable: int
    queues: tuple[int, int, int] | None = (128, 6, 50)


class _Schema(msgspec.Struct, frozen=True):
    name: str
    level: str
    precedence: int
    distinguisher: str
    subjects: tuple[str, ...]
    resources: tuple[Doc, ...] = (_ALL_RESOURCES,)
    urls: tuple[Doc, ...] = (_ALL_URLS,)


_LEVELS = (
    _Level("catch-all", 5, 0, None),
    _Level("system", 30, 33, (64, 6, 50)),
    _Level("node-high", 40, 25, (64, 6, 50)),
    _Level("leader-election", 10, 0, (16, 4, 50)),
    _Level("workload-high", 40, 50),
    _Level("workload-low", 100, 90),
    _Level("global-default", 20, 50),
)
_MANAGER, _SCHEDULER = ("user:system:kube-controller-manager",), ("user:system:kube-scheduler",)
_NODES, _SYSTEM = ("group:system:nodes",), ("sa:kube-system/*",)
_SCHEMAS = (
    _Schema("exempt", "exempt", 1, "", ("group:system:masters",)),
    _Schema("catch-all", "catch-all", 10000, "ByUser", _EVERYONE),
    _Schema("probes", "exempt", 2, "", _EVERYONE, (), (_PROBE_URLS,)),
    _Schema(
        "system-leader-election",
        "leader-election",
        100,
        "ByUser",
        _LEADERS,
        (_leases("get", "create", "update"),),
        (),
    ),
    _Schema("system-node-high", "node-high", 400, "ByUser", _NODES, (_NODE_OBJECTS, _leases("*")), ()),
    _Schema("system-nodes", "system", 500, "ByUser", _NODES),
    _Schema("kube-controller-manager", "workload-high", 800, "ByNamespace", _MANAGER),
    _Schema("kube-scheduler", "workload-high", 800, "ByNamespace", _SCHEDULER),
    _Schema("kube-system-service-accounts", "workload-high", 900, "ByNamespace", _SYSTEM),
    _Schema("service-accounts", "workload-low", 9000, "ByUser", ("group:system:serviceaccounts",)),
    _Schema("global-default", "global-default", 9900, "ByUser", _EVERYONE),
)


def flow_objects() -> list[Doc]:
    """Priority levels first, since flow schemas refer to them."""
    exempt: Doc = {
        "type": "Exempt",
        "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0},
    }
    levels = [_object("PriorityLevelConfiguration", "exempt", exempt)]
    levels += [_object("PriorityLevelConfiguration", level.name, _level_spec(level)) for level in _LEVELS]
    return levels + [_object("FlowSchema", schema.name, _schema_spec(schema)) for schema in _SCHEMAS]


def _object(kind: str, name: str, spec: Doc) -> Doc:
    metadata = {"name": name, "annotations": {"apf.kubernetes.io/autoupdate-spec": "true"}}
    return {"apiVersion": _API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}


def _level_spec(level: _Level) -> Doc:
    response: Doc = {"type": "Reject"}
    if level.queues:
        queues, hand_size, length = level.queues
        queuing = {"queues": queues, "handSize": hand_size, "queueLengthLimit": length}
        response = {"type": "Queue", "queuing": queuing}
    limited: Doc = {
        "nominalConcurrencyShares": level.shares,
        "limitResponse": response,
        "lendablePercent": level.lendable,
    }
    return {"type": "Limited", "limited": limited}


def _schema_spec(schema: _Schema) -> Doc:
    spec: Doc = {
        "priorityLevelConfiguration": {"name": schema.level},
        "matchingPrecedence": schema.precedence,
    }
    if schema.distinguisher:
        spec["distinguisherMethod"] = {"type": schema.distinguisher}
    rule: Doc = {"subjects": [_subject(word) for word in schema.subjects]}
    if schema.resources:
        rule["resourceRules"] = [dict(each) for each in schema.resources]
    if schema.urls:
        rule["nonResourceRules"] = [dict(each) for each in schema.urls]
    spec["rules"] = [rule]
    return spec


def _subject(word: str) -> Doc:
    kind, _, name = word.partition(":")
    if kind == "sa":
        namespace, _, name = name.partition("/")
        return {"kind": "ServiceAccount", "serviceAccount": {"namespace": namespace, "name": name}}
    if kind == "user":
        return {"kind": "User", "user": {"name": name}}
    return {"kind": "Group", "group": {"name": name}}
