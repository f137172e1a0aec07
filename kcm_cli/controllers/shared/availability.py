"""Requeues owners when their ready pods become available (minReadySeconds).

upstream: pkg/controller/replicaset/replica_set.go#updatePod
"""

from collections.abc import Callable
from typing import Any

from kcm_cli.api.core import Pod
from kcm_cli.engine.controller import After, Keys
from kcm_cli.planning.pods import became_ready


def when_available(skew_s: float = 0.0) -> Callable[[object, Any, Pod, Pod], Keys]:
    """A mapper for ``Owns.updated``: the owner of a pod that became ready, after minReadySeconds and ``skew_s``."""

    def updated(controller: object, owner: Any, old: Pod, new: Pod) -> Keys:
        delay_s = owner.spec.min_ready_seconds
        return (After(owner.key, delay_s + skew_s),) if delay_s > 0 and became_ready(old, new) else ()

    return updated
