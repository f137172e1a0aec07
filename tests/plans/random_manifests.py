"""Deployments at random, with what makes merging hard: lists whose items share a key, nulls, members of unions."""

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

from tests.kit.space import Tree

_POD_FIELDS = (
    *("containers", "initContainers", "volumes", "tolerations", "imagePullSecrets", "hostAliases"),
    *("nodeSelector", "securityContext", "topologySpreadConstraints"),
)
_SOURCES: tuple[Tree, ...] = (
    {"emptyDir": {}},
    {"emptyDir": {"medium": "Memory"}},
    {"configMap": {"name": "c"}},
    {"hostPath": {"path": "/x"}},
    {"projected": {"sources": [{"configMap": {"name": "c"}}]}},
    {},
)
_RESOURCES: tuple[Any, ...] = (
    *({}, None, {"limits": {"cpu": 1}}, {"limits": {"cpu": None}}),
    {"requests": {"memory": "1Gi"}, "limits": {"memory": "2Gi"}},
)
_PROBES: tuple[Any, ...] = (
    *({"httpGet": {"path": "/", "port": 80}}, {"tcpSocket": {"port": 80}}, {"exec": {"command": ["x"]}}, None),
    {"httpGet": {"path": "/b", "port": "http"}, "periodSeconds": 5},
)
_STRATEGIES: tuple[Any, ...] = (
    *({"type": "Recreate"}, {"rollingUpdate": None, "type": "Recreate"}, {}, None),
    {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "50%"}},
)


def changed_at_random(count: int, seed: int) -> Iterator[tuple[list[list[str]], str, str]]:
    """(kubectl's arguments and the manifest of each step before, the manifest, flags of its apply)."""
    rng = random.Random(seed)
    for _ in range(count):
        first = _deployment(rng)
        second = _changed(rng, first)
        how = rng.random()
        verb = "create" if how < 0.2 else "apply --server-side --field-manager=other" if how < 0.35 else "apply"
        steps = [[verb, json.dumps(first)]]
        if how > 0.75:
            steps.append(["apply --server-side --force-conflicts --field-manager=other", json.dumps(second)])
        flags = "--server-side --force-conflicts" if rng.random() < 0.25 else ""
        yield steps, json.dumps(_changed(rng, second)), flags


def _some(rng: random.Random, most: int) -> range:
    return range(rng.randint(0, most))


def _env(rng: random.Random) -> list[Tree]:
    values: tuple[Tree, ...] = (
        *({"value": "1"}, {"value": "2"}, {"value": ""}, {"value": None}, {}),
        *({"valueFrom": {"fieldRef": {"fieldPath": f"metadata.{name}"}}} for name in ("name", "namespace")),
    )
    return [{"name": rng.choice("ABC"), **rng.choice(values)} for _ in _some(rng, 4)]


def _port(rng: random.Random) -> Tree:
    port: Tree = {"containerPort": rng.choice((53, 80))}
    if rng.random() < 0.7:
        port["protocol"] = rng.choice(("TCP", "UDP"))
    return {**port, "name": rng.choice("abcdefghij")} if rng.random() < 0.5 else port


def _container(rng: random.Random, name: str, *, init: bool = False) -> Tree:
    fields: Tree = {
        "env": _env(rng),
        "ports": [_port(rng) for _ in _some(rng, 3)],
        "command": rng.choice((["a"], ["a", "b"], None, [])),
        "resources": rng.choice(_RESOURCES),
        "securityContext": rng.choice(({"runAsUser": 1}, {"capabilities": {"add": ["A", "B"]}}, {}, None)),
        "envFrom": [{"configMapRef": {"name": one}} for one in rng.sample("ab", rng.randint(0, 2))],
    }
    if not init:
        fields["livenessProbe"] = rng.choice(_PROBES)
    chosen = {field: value for field, value in fields.items() if rng.random() < 0.45}
    return {"name": name, "image": rng.choice(("i:1", "i:2")), **chosen}


def _pod(rng: random.Random) -> Tree:
    pairs = [(key, when) for key in "zy" for when in ("DoNotSchedule", "ScheduleAnyway")]
    fields: Tree = {
        "initContainers": [_container(rng, name, init=True) for name in rng.sample("xy", rng.randint(0, 2))],
        "volumes": [{"name": name, **rng.choice(_SOURCES)} for name in rng.sample("vwx", rng.randint(0, 3))],
        "tolerations": [{"key": key, "operator": "Exists"} for key in rng.sample("ab", rng.randint(0, 2))],
        "imagePullSecrets": [{"name": one} for one in rng.sample("ab", rng.randint(0, 2))] or rng.choice(([{}], [])),
        "hostAliases": [{"ip": ip, "hostnames": ["m"]} for ip in rng.sample(("1.1.1.1", "1.1.1.2"), rng.randint(0, 2))],
        "nodeSelector": rng.choice(({}, {"a": "b"}, {"a": "c", "d": "e"}, {"a": None}, None)),
        "securityContext": rng.choice(({}, {"fsGroup": 1}, None)),
        "topologySpreadConstraints": [
            {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": when}
            for key, when in rng.sample(pairs, rng.randint(0, 2))
        ],
    }
    chosen = {field: value for field, value in fields.items() if rng.random() < 0.35}
    return {"containers": [_container(rng, name) for name in rng.sample("cde", rng.randint(1, 3))], **chosen}


def _deployment(rng: random.Random) -> Tree:
    spec: Tree = {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": _pod(rng)},
    }
    if rng.random() < 0.6:
        spec["replicas"] = rng.choice((0, 1, 3, None))
    if rng.random() < 0.4:
        spec["strategy"] = rng.choice(_STRATEGIES)
    metadata: Tree = {"name": "web"}
    for name in ("labels", "annotations"):
        if rng.random() < 0.4:
            metadata[name] = {key: rng.choice(("1", "2", None)) for key in rng.sample("ab", rng.randint(0, 2))}
    if rng.random() < 0.2:
        metadata["finalizers"] = [f"x.io/{key}" for key in rng.sample("abc", rng.randint(0, 3))]
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def _changed(rng: random.Random, doc: Tree) -> Tree:
    """About half of it as in another one."""
    other, found = _deployment(rng), copy.deepcopy(doc)
    pods = (found["spec"]["template"]["spec"], other["spec"]["template"]["spec"], _POD_FIELDS)
    for ours, theirs, names in (pods, (found["spec"], other["spec"], ("replicas", "strategy"))):
        for name in names:
            if rng.random() < 0.5:
                ours.pop(name, None)
                if name in theirs:
                    ours[name] = theirs[name]
            if name == "containers":
                ours.setdefault(name, theirs.get(name))
    return {**found, "metadata": other["metadata"]} if rng.random() < 0.5 else found
