"""Who uses which volume, and who cannot use one together with others on one node.

upstream: pkg/controller/volume/selinuxwarning/cache, translator
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.selinux_warning.plan import Use
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


LABEL, POLICY = "SELinuxLabel", "SELinuxChangePolicy"
_ONLY_ONE = "If both pods land on the same node, only one of them may access the volume."


@dataclass(frozen=True, slots=True)
class Conflict:
    """As the first of two pods (keys) is told; the other one has a conflict of its own."""

    what: str
    pod: str
    value: str
    other: str
    other_value: str

    @property
    def reason(self) -> str:
        """Of the Event."""
        return f"{self.what}Conflict"

    def message(self) -> str:
        """Nobody is told the names of pods in other namespaces than their own."""
        (namespace, _), (other_namespace, other) = split_key(self.pod), split_key(self.other)
        uses = "that uses the same volume as this pod with"
        if namespace != other_namespace:
            different = f'{self.what}"{self.value}" conflicts with another pod {uses} a different {self.what}'
            return f"{different}. {_ONLY_ONE}"
        value = f'{self.what} "{self.value}" conflicts with pod {other} {uses}'
        return f'{value} {self.what} "{self.other_value}". {_ONLY_ONE}'


@dataclass(slots=True)
class _Volume:
    driver: str
    pods: dict[str, Use] = field(default_factory=dict)
    conflicts: set[Conflict] = field(default_factory=set)


class SharedVolumes:
    """Keys are pods. ``changed`` is told of each conflict that comes (True) or goes."""

    def __init__(self, changed: Callable[[Conflict, bool], None]) -> None:
        self._changed = changed
        self._volumes: dict[str, _Volume] = {}
        self._of_pod: dict[str, set[str]] = {}
        self._active: Counter[Conflict] = Counter()

    def add(self, name: str, driver: str, key: str, use: Use) -> list[Conflict]:
        """Note how a pod uses a volume; the conflicts that come of it, where it is not known yet."""
        volume = self._volumes.setdefault(name, _Volume(driver))
        self._of_pod.setdefault(key, set()).add(name)
        if volume.pods.get(key) == use:
            return []
        self._settle(volume, key)
        volume.pods[key] = use
        found = [
            conflict for other, theirs in sorted(volume.pods.items()) for conflict in _between(key, use, other, theirs)
        ]
        for conflict in found:
            self._begin(volume, conflict)
        return found

    def remove(self, key: str) -> None:
        """A pod uses nothing any more."""
        for name in self._of_pod.pop(key, ()):
            volume = self._volumes[name]
            self._settle(volume, key)
            volume.pods.pop(key, None)
            if not volume.pods:
                del self._volumes[name]

    def pods_of_driver(self, driver: str) -> set[str]:
        return {key for volume in self._volumes.values() if volume.driver == driver for key in volume.pods}

    def _settle(self, volume: _Volume, key: str) -> None:
        """A pod is in no conflict about a volume any more."""
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


def _between(key: str, use: Use, other: str, theirs: Use) -> Iterator[Conflict]:
    """What is between two pods, as told to both of them."""
    if use.policy != theirs.policy:
        yield Conflict(POLICY, key, use.policy, other, theirs.policy)
        yield Conflict(POLICY, other, theirs.policy, key, use.policy)
    if differ(use.label, theirs.label):
        yield Conflict(LABEL, key, use.label, other, theirs.label)
        yield Conflict(LABEL, other, theirs.label, key, use.label)


def differ(label: str, other: str) -> bool:
    """Whether two labels cannot be the same: levels are compared as they are, the rest where both say something."""
    *parts, level = _parts(label)
    *other_parts, other_level = _parts(other)
    return level != other_level or any(a and b and a != b for a, b in zip(parts, other_parts, strict=True))


def _parts(label: str) -> list[str]:
    parts = label.split(":", 3)
    return parts + [""] * (4 - len(parts))
