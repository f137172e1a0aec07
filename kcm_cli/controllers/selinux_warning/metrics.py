"""Which pods are in conflict about volumes.

upstream: pkg/controller/volume/selinuxwarning/metrics.go
"""

from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.selinux_warning.conflicts import Conflict
from kcm_cli.machinery.meta import split_key


class ConflictMetrics:
    """selinux_warning_controller_selinux_volume_conflict."""

    def __init__(self, registry: Registry) -> None:
        one, two = ("pod1_namespace", "pod1_name", "pod1_value"), ("pod2_namespace", "pod2_name", "pod2_value")
        self._conflicts = registry.gauge(
            "selinux_warning_controller_selinux_volume_conflict",
            "Two pods that cannot use the same volume on one node: 1 for each conflict.",
            labels=("property", *one, *two),
        )

    def changed(self, conflict: Conflict, active: bool) -> None:
        """A conflict has come or gone."""
        pod, other = split_key(conflict.pod), split_key(conflict.other)
        labels = (conflict.what, *pod, conflict.value, *other, conflict.other_value)
        if active:
            self._conflicts.labels(*labels).set(1)
        else:
            self._conflicts.remove(*labels)
