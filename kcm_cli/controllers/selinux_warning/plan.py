"""Computes the SELinux label and change policy of a pod's volumes, and the conflicts between pods.

upstream: pkg/volume/util/selinux.go, pkg/controller/volume/selinuxwarning/{cache,translator}
"""

from collections.abc import Callable, Iterator

import msgspec

from kcm_cli.api.core import PersistentVolumeClaim
from kcm_cli.api.selinux import MountedVolume, MountingPod, SELinuxOptions
from kcm_cli.api.storage import CsiDriver, HostPathSource, NfsSource, PersistentVolume
from kcm_cli.machinery.errors import SyncError
from kcm_cli.machinery.meta import split_key
from kcm_cli.planning.pod_claims import claim_name
from kcm_cli.planning.volumes.attachable import FC, ISCSI, bound_volume, of_inline, of_volume

MOUNT_OPTION, RECURSIVE = "MountOption", "Recursive"
_MOUNTED_WITH_LABELS = frozenset({ISCSI, FC})
_NO_OPTIONS = ":::"
LABEL, POLICY = "SELinuxLabel", "SELinuxChangePolicy"
_ONLY_ONE = "If both pods land on the same node, only one of them may access the volume."


class Conflict(msgspec.Struct, frozen=True):
    """A conflict that is reported on the first of two pods (keys). The other one has its own."""

    what: str
    pod: str
    value: str
    other: str
    other_value: str

    @property
    def reason(self) -> str:
        """The reason of the Event."""
        return f"{self.what}Conflict"

    def message(self) -> str:
        """The message of the Event. Names of pods in other namespaces are not shown."""
        (namespace, _), (other_namespace, other) = split_key(self.pod), split_key(self.other)
        uses = "that uses the same volume as this pod with"
        if namespace != other_namespace:
            different = f'{self.what}"{self.value}" conflicts with another pod {uses} a different {self.what}'
            return f"{different}. {_ONLY_ONE}"
        value = f'{self.what} "{self.value}" conflicts with pod {other} {uses}'
        return f'{value} {self.what} "{self.other_value}". {_ONLY_ONE}'


class Found(msgspec.Struct, frozen=True):
    """The source of a pod's volume. ``name`` is unique for a volume in the storage system."""

    name: str
    plugin: str
    driver: str = ""


class Use(msgspec.Struct, frozen=True):
    """A pod's use of a volume: its label (empty if it is not mounted with one) and its policy."""

    label: str
    policy: str


class SeveralLabels(SyncError):
    """Containers of one pod mount a volume with different labels."""


class Unbound(SyncError):
    """A pod's claim does not exist or is not bound."""


def plan(key: str, use: Use, other: str, theirs: Use) -> Iterator[Conflict]:
    """The conflicts between two pods about a volume, one for each of the two pods."""
    if use.policy != theirs.policy:
        yield Conflict(POLICY, key, use.policy, other, theirs.policy)
        yield Conflict(POLICY, other, theirs.policy, key, use.policy)
    if differ(use.label, theirs.label):
        yield Conflict(LABEL, key, use.label, other, theirs.label)
        yield Conflict(LABEL, other, theirs.label, key, use.label)


def differ(label: str, other: str) -> bool:
    """Whether two labels conflict. Levels must be equal; other parts conflict where both are set and differ."""
    *parts, level = _parts(label)
    *other_parts, other_level = _parts(other)
    return level != other_level or any(a and b and a != b for a, b in zip(parts, other_parts, strict=True))


def _parts(label: str) -> list[str]:
    parts = label.split(":", 3)
    return parts + [""] * (4 - len(parts))


def labels_of(pod: MountingPod) -> dict[str, set[str]]:
    """The labels with which a pod's containers mount each volume."""
    spec = pod.spec
    own = spec.security_context.se_linux_options if spec.security_context is not None else None
    labels: dict[str, set[str]] = {}
    for container in (*spec.init_containers, *spec.containers, *spec.ephemeral_containers):
        context = container.security_context
        options = context.se_linux_options if context is not None and context.se_linux_options is not None else own
        for mount in container.volume_mounts:
            found = labels.setdefault(mount.name, set())
            if options is not None:
                found.add(_label(options))
    return labels


def use_of(pod: MountingPod, labels: set[str], mounts_with_labels: bool) -> Use:
    """A pod's use of a volume. ``mounts_with_labels``: whether the volume's plugin can do that. Raises
    SeveralLabels."""
    if len(labels) > 1:
        raise SeveralLabels(f"multiple SELinux labels found: {','.join(sorted(labels))}")
    context = pod.spec.security_context
    policy = (context.se_linux_change_policy if context is not None else None) or MOUNT_OPTION
    label = next(iter(labels), "")
    if policy == RECURSIVE or not mounts_with_labels:
        return Use("", RECURSIVE)
    return Use(label, policy if label else RECURSIVE)


def read(
    pod: MountingPod,
    volume: MountedVolume,
    claim_of: Callable[[str], PersistentVolumeClaim | None],
    volume_of: Callable[[str], PersistentVolume | None],
) -> Found | None:
    """The source of a pod's volume; None for kinds without SELinux support. Raises Unbound."""
    if not claim_name(pod, volume):
        attached = of_inline(pod, volume)
        if attached is None:
            return _local(volume.host_path, volume.nfs)
        return Found(attached.unique_name, attached.plugin, attached.driver)
    bound = bound_volume(pod, volume, claim_of, volume_of)
    if bound is None:
        raise Unbound(f"PVC {pod.namespace}/{claim_name(pod, volume)} is not bound")
    attached = of_volume(bound)
    if attached is None:
        return _local(bound.spec.host_path, bound.spec.nfs)
    return Found(attached.unique_name, attached.plugin, attached.driver)


def mounts_with_labels(found: Found | None, driver: CsiDriver | None) -> bool:
    """Whether a volume's plugin can mount with a label; for CSI drivers that is seLinuxMount."""
    if found is None:
        return False
    if found.driver:
        return driver is not None and bool(driver.spec.se_linux_mount)
    return found.plugin in _MOUNTED_WITH_LABELS


def _label(options: SELinuxOptions) -> str:
    label = f"{options.user}:{options.role}:{options.type}:{options.level}"
    return "" if label == _NO_OPTIONS else label


def _local(host_path: HostPathSource | None, nfs: NfsSource | None) -> Found | None:
    if host_path is not None and host_path.path:
        return Found(f"kubernetes.io/host-path/{host_path.path}", "kubernetes.io/host-path")
    return Found(f"kubernetes.io/nfs/{nfs.server}/{nfs.path}", "kubernetes.io/nfs") if nfs is not None else None
