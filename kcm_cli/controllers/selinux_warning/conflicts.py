"""Records which pods use which volumes, and the conflicts between pods that share one.

upstream: pkg/controller/volume/selinuxwarning/cache, translator
"""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain, islice

import msgspec

from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.selinux_warning.plan import Conflict, Use, plan
from kcm_cli.machinery.meta import split_key

MOST = 10_000
"""Conflicts that are reported at the same time. The pairs of pods of one volume grow with the square of the pods."""


class _Volume(msgspec.Struct):
    """pods: how each pod uses the volume. uses: the pods of each use; only different uses can conflict. conflicts: each
    pod's, on either side."""

    driver: str
    pods: dict[str, Use] = msgspec.field(default_factory=dict)
    uses: dict[Use, set[str]] = msgspec.field(default_factory=dict)
    conflicts: dict[str, set[Conflict]] = msgspec.field(default_factory=dict)

    def others(self, key: str, use: Use) -> Iterator[Conflict]:
        """The conflicts of a pod with pods that use the volume differently."""
        different = (pods for theirs, pods in self.uses.items() if any(plan("", use, "", theirs)))
        for other in sorted(chain.from_iterable(different)):
            yield from plan(key, use, other, self.pods[other])


class SharedVolumes:
    """The volumes by name. ``changed`` is called when a conflict starts (True) or ends (False). upstream:
    volumeCache."""

    def __init__(self, changed: Callable[[Conflict, bool], None]) -> None:
        self._changed = changed
        self._volumes: dict[str, _Volume] = {}
        self._of_pod: dict[str, set[str]] = {}
        self._active: Counter[Conflict] = Counter()

    def add(self, name: str, driver: str, key: str, use: Use) -> list[Conflict]:
        """Record how a pod uses a volume. Returns the pod's conflicts if the use is new: as many as MOST permits."""
        volume = self._volumes.setdefault(name, _Volume(driver))
        self._of_pod.setdefault(key, set()).add(name)
        if volume.pods.get(key) == use:
            return []
        self._settle(volume, key)
        volume.pods[key] = use
        volume.uses.setdefault(use, set()).add(key)
        if len(self._active) >= MOST:
            return []
        found = list(islice(volume.others(key, use), MOST - len(self._active)))
        for conflict in found:
            self._begin(volume, conflict)
        return found

    def remove(self, key: str) -> None:
        """Remove a pod and its conflicts."""
        for name in self._of_pod.pop(key, ()):
            volume = self._volumes[name]
            self._settle(volume, key)
            if not volume.pods:
                del self._volumes[name]

    def pods_of_driver(self, driver: str) -> set[str]:
        return {key for volume in self._volumes.values() if volume.driver == driver for key in volume.pods}

    def _settle(self, volume: _Volume, key: str) -> None:
        """End a pod's use of a volume, and its conflicts about it."""
        use = volume.pods.pop(key, None)
        if use is None:
            return
        volume.uses[use].discard(key)
        if not volume.uses[use]:
            del volume.uses[use]
        for conflict in volume.conflicts.pop(key, ()):
            other = conflict.other if conflict.pod == key else conflict.pod
            theirs = volume.conflicts[other]
            theirs.discard(conflict)
            if not theirs:
                del volume.conflicts[other]
            self._active[conflict] -= 1
            if not self._active[conflict]:
                del self._active[conflict]
                self._changed(conflict, False)

    def _begin(self, volume: _Volume, conflict: Conflict) -> None:
        for key in (conflict.pod, conflict.other):
            volume.conflicts.setdefault(key, set()).add(conflict)
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
