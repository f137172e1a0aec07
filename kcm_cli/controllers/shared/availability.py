"""Ready pods become available with time: when to look at their owner again.

upstream: pkg/controller/replicaset/replica_set.go#updatePod
"""

from collections.abc import Callable
from typing import Any

from kcm_cli.api.core import Pod
from kcm_cli.engine.controller import After, Keys
from kcm_cli.planning.pods import became_ready


def when_available(skew_s: float = 0.0) -> Callable[[object, Any, Pod, Pod], Keys]:
    """The owner of a pod that has become ready, when the pod becomes available, or so much later. For ``Owns.updated``
    of a kind with minReadySeconds."""

    def updated(controller: object, owner: Any, old: Pod, new: Pod) -> Keys:
        delay_s = owner.spec.min_ready_seconds
        return (After(owner.key, delay_s + skew_s),) if delay_s > 0 and became_ready(old, new) else ()

    return updated
