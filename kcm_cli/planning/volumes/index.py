"""An index of unbound volumes: finds the smallest one that fits a claim without looking at all.

Volumes with exactly the requested access modes come before those with more modes, even if one of the latter is reserved
for the claim. With equal modes a reserved volume comes first, then the smallest, then the first by name.

upstream: pkg/controller/volume/persistentvolume/index.go, component-helpers' FindMatchingVolume
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kcm_cli.api.core import PersistentVolumeClaim
from kcm_cli.api.storage import PersistentVolume
from kcm_cli.machinery.labels import from_label_selector
from kcm_cli.machinery.quantity import Quantity
from kcm_cli.planning.volumes.classes import class_of_claim, class_of_volume
from kcm_cli.planning.volumes.matching import FILESYSTEM, attributes_class, capacity, points_to, requested, satisfies

ACCESS_MODES = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")
Modes = frozenset[str]


class _Kind(NamedTuple):
    """The properties that must be equal."""

    modes: Modes
    class_name: str
    volume_mode: str
    attributes_class: str


class _Entry(NamedTuple):
    size: Quantity
    name: str


class VolumeIndex:
    """Unbound volumes by properties and size, and volumes with a claimRef by their claim."""

    def __init__(self) -> None:
        self._volumes: dict[str, PersistentVolume] = {}
        self._free: dict[_Kind, list[_Entry]] = {}
        self._kept: dict[str, dict[str, PersistentVolume]] = {}
        self._modes: dict[Modes, int] = {}

    def change(self, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        """A volume was added (no ``old``), updated, or deleted (no ``new``)."""
        if old is not None:
            self._take(old)
        if new is not None:
            self._file(new)

    def match(self, claim: PersistentVolumeClaim, *, reserved_only: bool = False) -> PersistentVolume | None:
        """The best volume for a claim, or None. ``reserved_only``: only a volume reserved for it. Raises FormatError
        for an invalid selector."""
        kept = [volume for volume in self._kept.get(claim.key, {}).values() if points_to(volume, claim)]
        kept = [volume for volume in kept if satisfies(volume, claim)]
        if reserved_only and not kept:
            return None
        for modes in self._wider(frozenset(claim.spec.access_modes)):
            of_these = [volume for volume in kept if _modes(volume) == modes]
            if of_these:
                return min(of_these, key=lambda volume: (capacity(volume), volume.name))
            found = None if reserved_only else next(self._fitting(claim, modes), None)
            if found is not None:
                return found
        return None

    def kept_for(self, key: str) -> list[str]:
        """The names of the volumes that point to the claim of this key."""
        return sorted(self._kept.get(key, ()))

    def _wider(self, wanted: Modes) -> list[Modes]:
        """The sets of access modes of volumes that include the wanted ones, the smallest first."""
        return sorted((modes for modes in self._modes if wanted <= modes), key=_rank)

    def _fitting(self, claim: PersistentVolumeClaim, modes: Modes) -> Iterator[PersistentVolume]:
        selector = from_label_selector(claim.spec.selector) if claim.spec.selector is not None else None
        mode = claim.spec.volume_mode or FILESYSTEM
        entries = self._free.get(_Kind(modes, class_of_claim(claim), mode, attributes_class(claim)), [])
        for index in range(bisect_left(entries, _Entry(requested(claim), "")), len(entries)):
            volume = self._volumes[entries[index].name]
            if selector is None or selector.matches(volume.labels):
                yield volume

    def _file(self, volume: PersistentVolume) -> None:
        modes = _modes(volume)
        self._modes[modes] = self._modes.get(modes, 0) + 1
        self._volumes[volume.name] = volume
        ref = volume.spec.claim_ref
        if ref is not None:
            self._kept.setdefault(f"{ref.namespace}/{ref.name}", {})[volume.name] = volume
        elif _is_free(volume):
            insort(self._free.setdefault(_kind(volume), []), _Entry(capacity(volume), volume.name))

    def _take(self, volume: PersistentVolume) -> None:
        modes = _modes(volume)
        self._modes[modes] -= 1
        if not self._modes[modes]:
            del self._modes[modes]
        del self._volumes[volume.name]
        ref = volume.spec.claim_ref
        if ref is not None:
            self._forget(f"{ref.namespace}/{ref.name}", volume.name)
        elif _is_free(volume):
            kind = _kind(volume)
            entries = self._free[kind]
            del entries[bisect_left(entries, _Entry(capacity(volume), volume.name))]
            if not entries:
                del self._free[kind]

    def _forget(self, key: str, name: str) -> None:
        kept = self._kept[key]
        del kept[name]
        if not kept:
            del self._kept[key]


def _is_free(volume: PersistentVolume) -> bool:
    return volume.status.phase == "Available" and not volume.deleting


def _modes(volume: PersistentVolume) -> Modes:
    return frozenset(volume.spec.access_modes)


def _kind(volume: PersistentVolume) -> _Kind:
    mode = volume.spec.volume_mode or FILESYSTEM
    return _Kind(_modes(volume), class_of_volume(volume), mode, attributes_class(volume))


def _rank(modes: Iterable[str]) -> tuple[int, list[int]]:
    places = sorted(ACCESS_MODES.index(mode) if mode in ACCESS_MODES else len(ACCESS_MODES) for mode in modes)
    return len(places), places
