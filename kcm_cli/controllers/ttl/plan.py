"""The time for which kubelets may cache Secrets and ConfigMaps. It grows with the number of nodes.

upstream: pkg/controller/ttl/ttl_controller.go
"""

import re

ANNOTATION = "node.alpha.kubernetes.io/ttl"

_NUMBER = re.compile("[+-]?[0-9]{1,19}")
_STEPS: tuple[tuple[int, int | None, int], ...] = (
    (0, 100, 0),
    (90, 500, 15),
    (450, 1000, 30),
    (900, 2000, 60),
    (1800, None, 300),
)
"""Fewest nodes, most nodes, seconds. The ranges overlap, so that a cluster at a border does not flap."""


def next_step(step: int, nodes: int) -> int:
    """The step for this number of nodes, starting from ``step``."""
    while (most := _STEPS[step][1]) is not None and nodes > most:
        step += 1
    while nodes < _STEPS[step][0]:
        step -= 1
    return step


def plan(annotation: str | None, step: int) -> int | None:
    """The seconds to write into a node's annotation; None if it has them. An invalid value counts as absent."""
    wanted = _STEPS[step][2]
    unread = annotation is None or _NUMBER.fullmatch(annotation) is None
    return wanted if unread or int(annotation or "") != wanted else None
