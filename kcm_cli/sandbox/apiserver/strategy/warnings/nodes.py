"""Warnings about deprecated node labels.

upstream: pkg/api/node/util.go
"""

from collections.abc import Mapping

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.types import Tree

DEPRECATED: Mapping[str, str] = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": ('deprecated since v1.17; use "topology.kubernetes.io/region" instead'),
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}


def of_term(term: Tree, path: str, *, values: bool = False) -> list[str]:
    """Warnings about a term of a node selector. ``values``: also about values that are invalid for labels."""
    found: list[str] = []
    for index, item in enumerate(term.get("matchExpressions") or ()):
        place, key = f"{path}.matchExpressions[{index}]", item.get("key", "")
        if message := DEPRECATED.get(key):
            found.append(f"{place}.key: {key} is {message}")
        for number, value in enumerate(item.get("values") or () if values else ()):
            for message in names.label_value(value):
                found.append(f"{place}.values[{number}]: {value} is invalid, {message}")
    return found
