"""The state of a node."""

from kcm_cli.api.core import Node
from kcm_cli.planning.conditions import is_true

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
"""The taint of a node that was shut down, set by an administrator."""


def is_ready(node: Node) -> bool:
    return is_true(node.status.conditions, "Ready")


def is_out_of_service(node: Node) -> bool:
    return any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints)
