"""TaintNodesByCondition: new nodes have the not-ready taint, which the node controller removes.

upstream: plugin/pkg/admission/nodetaint
"""

from kcm_cli.api.well_known import NOT_READY
from kcm_cli.sandbox.apiserver.types import Attributes, Tree


def taint(attrs: Attributes) -> None:
    """Add the taint to a new node."""
    node: Tree = attrs.obj or {}
    spec: Tree = node.get("spec") or {}
    node["spec"] = spec
    taints: list[Tree] = spec.get("taints") or []
    if not any(each.get("key") == NOT_READY and each.get("effect") == "NoSchedule" for each in taints):
        spec["taints"] = [*taints, {"key": NOT_READY, "effect": "NoSchedule"}]
