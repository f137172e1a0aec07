"""Records which pods use which volumes, and the conflicts between pods that share one.

upstream: pkg/controller/volume/selinuxwarning/cache, translator
"""

from collections import Counter
from collections.abc import Callable

import msgspec

from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.selinux_warning.plan import Conflict, Use, plan
from kcm_cli.machinery.meta import split_key


class _Volume(msgspec.Struct):
    driver: str
    pods: dict[str, Use] = msgspec.field(default_factory=dict)
    conflicts: set[Conflict] = msgspec.field(default_factory=set)


class SharedVolumes:
    """The volumes by name. ``changed`` is called when a conflict starts (True) or ends (False). upstream:
    volumeCache."""

    def __init__(self, changed: Callable[[Conflict, bool], None]) -> None:
        self._changed = changed
        self._volumes: dict[str, _Volume] = {}
        self._of_pod: dict[str, set[str]] = {}
        self._active: Counter[Conflict] = Counter()

    def add(self, name: str, driver: str, key: str, use: Use) -> list[Conflict]:
        """Record how a pod uses a volume. Returns the pod's conflicts if the use is new."""
        volume = self._volumes.setdefault(name, _Volume(driver))
        self._of_pod.setdefault(key, set()).add(name)
        if volume.pods.get(key) == use:
            return []
        self._settle(volume, key)
        volume.pods[key] = use
        found = [
            conflict for other, theirs in sorted(volume.pods.items()) for conflict in plan(key, use, other, theirs)
        ]
        for conflict in found:
            self._begin(volume, conflict)
        return found

    def remove(self, key: str) -> None:
        """Remove a pod and its conflicts."""
        for name in self._of_pod.pop(key, ()):
            volume = self._volumes[name]
            self._settle(volume, key)
            volume.pods.pop(key, None)
            if not volume.pods:
                del self._volumes[name]

    def pods_of_driver(self, driver: str) -> set[str]:
        return {key for volume in self._volumes.values() if volume.driver == driver for key in volume.pods}

    def _settle(self, volume: _Volume, key: str) -> None:
        """End the conflicts of a pod about one volume."""
        for conflict in [one for one in volume.conflicts if key in (one.pod, one.other)]:
            volume.conflicts.discard(conflict)
            self._active[conflict] -= 1
            if not self._active[conflict]:
                del self._active[conflict]
                self._changed(conflict, False)

    def _begin(self, volume: _Volume, conflict: Conflict) -> None:
        volume.conflicts.add(conflict)
        self._active[conflict] += 1
        if self._active[conflict] == 1:
            self._changed(conflict, True)


class ConflictMetrics:
    """The metric selinux_warning_controller_selinux_volume_conflict."""

    def __init__(self, registry: Registry) -> None:
        one, two = ("pod1_namespace", "pod1_name", "pod1_value"), ("pod2_namespace", "pod2_name", "pod2_value")
        self._conflicts = registry.gauge(
            "selinux_warning_controller_selinux_volume_conflict",
            "Two pods that cannot use the same volume on one node: 1 for each conflict.",
            labels=("property", *one, *two),
        )

    def changed(self, conflict: Conflict, active: bool) -> None:
        """Set the metric of a conflict that started, or remove that of one that ended."""
        pod, other = split_key(conflict.pod), split_key(conflict.other)
        labels = (conflict.what, *pod, conflict.value, *other, conflict.other_value)
        if active:
            self._conflicts.labels(*labels).set(1)
        else:
            self._conflicts.remove(*labels)
