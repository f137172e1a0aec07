"""Attachable volumes: volumes that are attached to a node before pods can mount them, and their unique names.

Volumes of migrated in-tree plugins belong to their CSI drivers, including inline volumes in pods.

upstream: pkg/volume/{csi,iscsi,fc}, pkg/volume/util/util.go, pkg/controller/volume/attachdetach/util/util.go
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace  # noqa: TID251  # not all of its fields count for equality
from hashlib import sha256

from kcm_cli.api.core import FlexSource, PersistentVolumeClaim, Pod, Volume
from kcm_cli.api.storage import CsiDriver, PersistentVolume
from kcm_cli.machinery.codec import Doc
from kcm_cli.planning.csi_handles import migrated_handle, migrated_modes
from kcm_cli.planning.pod_claims import claim_name, made_for
from kcm_cli.planning.volumes.inline import inline
from kcm_cli.planning.volumes.migration import DRIVERS, migrated_plugin

CSI = "kubernetes.io/csi"
ISCSI = "kubernetes.io/iscsi"
FC = "kubernetes.io/fc"
PLUGINS = frozenset({CSI, ISCSI, FC})
SEPARATOR = "^"
_SHARED = frozenset({"ReadWriteMany", "ReadOnlyMany"})


@dataclass(frozen=True, slots=True)
class AttachableVolume:
    """A volume and its plugin.

    ``unique_name``: identifies the volume in the storage system. ``name``: the name of the PersistentVolume or, for an
    inline volume, of the pod's volume. ``shared``: whether it may be attached to several nodes. ``driver``, ``handle``:
    for CSI volumes. ``migrated``: whether the volume is of a migrated in-tree plugin. ``spec``: for a migrated inline
    volume, the spec of the PersistentVolume that it would have. ``options``: the options of a FlexVolume driver.
    """

    unique_name: str
    name: str
    plugin: str
    shared: bool = True
    driver: str = ""
    handle: str = ""
    migrated: bool = False
    spec: Doc | None = field(default=None, compare=False)
    options: Mapping[str, str] | None = field(default=None, compare=False)

    @property
    def full_plugin(self) -> str:
        """The plugin with its driver, as metrics name it."""
        return f"{self.plugin}:{self.driver}" if self.driver else self.plugin


def attachment_name(driver: str, handle: str, node: str) -> str:
    """The name of the VolumeAttachment of a CSI volume to a node."""
    return f"csi-{sha256(f'{handle}{driver}{node}'.encode()).hexdigest()}"


def is_attached_by(driver: CsiDriver | None) -> bool:
    """Whether volumes of a driver are attached: they are unless its CSIDriver has attachRequired: false."""
    return driver is None or driver.spec.attach_required is not False


def of_volume(volume: PersistentVolume, *, read_only: bool = False) -> AttachableVolume | None:
    """The volume of a PersistentVolume; None for a kind that is not attached. ``read_only``: a pod requests that."""
    spec = volume.spec
    if spec.csi is not None:
        return _csi(spec.csi.driver, spec.csi.volume_handle, volume.name, _is_shared(spec.access_modes))
    plugin = migrated_plugin(volume)
    if plugin:
        handle, modes = migrated_handle(plugin, volume), migrated_modes(plugin, volume)
        found = _csi(DRIVERS[plugin], handle, volume.name, _is_shared(modes))
        return replace(found, migrated=True) if handle else None
    shared = _is_shared(spec.access_modes)
    if spec.flex_volume is not None:
        return _flex(volume.name, spec.flex_volume, read_only=read_only, shared=shared)
    return of_source(volume.name, spec.iscsi, spec.fc, shared)


def of_pod_volume(
    pod: Pod,
    volume: Volume,
    claim_of: Callable[[str], PersistentVolumeClaim | None],
    volume_of: Callable[[str], PersistentVolume | None],
) -> AttachableVolume | None:
    """The volume of a pod's volume; None for one that is not attached, or whose claim is not bound."""
    if not claim_name(pod, volume):
        return of_inline(pod, volume)
    bound = bound_volume(pod, volume, claim_of, volume_of)
    claim = volume.persistent_volume_claim
    return of_volume(bound, read_only=claim is not None and claim.read_only) if bound is not None else None


def of_inline(pod: Pod, volume: Volume) -> AttachableVolume | None:
    """The volume of an inline volume; None for a kind that is not attached."""
    if volume.flex_volume is not None:
        return _flex(volume.name, volume.flex_volume, read_only=volume.flex_volume.read_only, shared=True)
    moved = inline(volume, pod.namespace)
    if moved is None:
        return of_source(volume.name, volume.iscsi, volume.fc, shared=True)
    shared = moved.spec["accessModes"] != ["ReadWriteOnce"]
    return replace(_csi(moved.driver, moved.handle, moved.name, shared), migrated=True, spec=moved.spec)


def bound_volume(
    pod: Pod,
    volume: Volume,
    claim_of: Callable[[str], PersistentVolumeClaim | None],
    volume_of: Callable[[str], PersistentVolume | None],
) -> PersistentVolume | None:
    """The PersistentVolume that is bound to the claim of a pod's volume, or None."""
    claim = claim_of(f"{pod.namespace}/{claim_name(pod, volume)}")
    if claim is None or claim.status.phase != "Bound" or not claim.spec.volume_name:
        return None
    if volume.ephemeral is not None and not made_for(claim, pod):
        return None
    bound = volume_of(claim.spec.volume_name)
    if bound is None or bound.spec.claim_ref is None or bound.spec.claim_ref.uid != claim.uid:
        return None
    return bound


def may_be_attached(pod: Pod) -> bool:
    """Whether a pod has volumes that might be attached."""
    return any(
        volume.persistent_volume_claim is not None
        or volume.ephemeral is not None
        or volume.iscsi is not None
        or volume.fc is not None
        or volume.flex_volume is not None
        or inline(volume, pod.namespace) is not None
        for volume in pod.spec.volumes
    )


def plugin_of(unique_name: str) -> tuple[str, str]:
    """A unique name as (plugin, the plugin's name of the volume); both are empty for an invalid name."""
    vendor, _, rest = unique_name.partition("/")
    plugin, slash, name = rest.partition("/")
    return (f"{vendor}/{plugin}", name) if slash else ("", "")


def _is_shared(modes: tuple[str, ...]) -> bool:
    return not modes or not _SHARED.isdisjoint(modes)


def _csi(driver: str, handle: str, name: str, shared: bool) -> AttachableVolume:
    return AttachableVolume(f"{CSI}/{driver}{SEPARATOR}{handle}", name, CSI, shared, driver, handle)


def _flex(name: str, source: FlexSource, *, read_only: bool, shared: bool) -> AttachableVolume | None:
    if not source.driver:
        return None
    options = {
        "kubernetes.io/fsType": source.fs_type,
        "kubernetes.io/readwrite": "ro" if read_only else "rw",
        "kubernetes.io/pvOrVolumeName": name,
        **(source.options or {}),
    }
    return AttachableVolume(f"{source.driver}/{name}", name, source.driver, shared, options=options)


def of_source(name: str, iscsi: Doc | None, fc: Doc | None, shared: bool) -> AttachableVolume | None:
    """A volume that kubelets attach themselves."""
    if iscsi is not None:
        target = f"{iscsi.get('targetPortal', '')}:{iscsi.get('iqn', '')}:{iscsi.get('lun', 0)}"
        return AttachableVolume(f"{ISCSI}/{target}", name, ISCSI, shared)
    if fc is not None:
        names, lun, ids = fc.get("targetWWNs"), fc.get("lun"), fc.get("wwids")
        if isinstance(names, list) and names and lun is not None:
            return AttachableVolume(f"{FC}/[{' '.join(map(str, names))}]:{lun}", name, FC, shared)
        if isinstance(ids, list) and ids:
            return AttachableVolume(f"{FC}/[{' '.join(map(str, ids))}]", name, FC, shared)
    return None
