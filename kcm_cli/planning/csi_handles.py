"""The CSI volume handles of volumes of former in-tree plugins.

upstream: staging/src/k8s.io/csi-translation-lib/plugins
"""

import re
from collections.abc import Callable, Mapping

from kcm_cli.api.storage import PersistentVolume
from kcm_cli.api.well_known import ZONE
from kcm_cli.machinery.codec import Doc

ZONES = ("failure-domain.beta.kubernetes.io/zone", ZONE)
RESOURCE_GROUP = "kubernetes.io/azure-file-resource-group"
_SEVERAL = "__"
_UNKNOWN = "UNSPECIFIED"
_AWS_VOLUME = re.compile(r"aws://[^/]*/+(vol-[^/]*)/*")
_AZURE_SECRET = "azure-storage-account-", "-secret"
"""What is before and after the account in the name of a secret."""


def migrated_handle(plugin: str, volume: PersistentVolume) -> str:
    """The handle of a volume of an in-tree plugin; empty where the source does not identify a volume."""
    handle_of = _HANDLES.get(plugin)
    return handle_of(volume) if handle_of is not None else ""


def migrated_modes(plugin: str, volume: PersistentVolume) -> tuple[str, ...]:
    """The access modes of a migrated volume. Disks of GCE are never ReadWriteMany."""
    modes = volume.spec.access_modes
    if plugin != "kubernetes.io/gce-pd" or not modes:
        return modes
    return ("ReadOnlyMany",) if set(modes) == {"ReadOnlyMany"} else ("ReadWriteOnce",)


def text(source: Doc | None, field: str) -> str:
    """A field of a volume's source; empty where it is not a string."""
    value = (source or {}).get(field)
    return value if isinstance(value, str) else ""


def aws_volume(named: str) -> str:
    """The handle of a disk of AWS, which may be named with its zone."""
    if not named.startswith("aws://"):
        return named
    found = _AWS_VOLUME.fullmatch(named)
    return found.group(1) if found is not None else ""


def is_managed(source: Doc | None) -> bool:
    """Whether a disk of Azure is a managed disk."""
    kind = text(source, "kind")
    return not kind or kind.lower() == "managed"


def azure_account(secret: str) -> str:
    """The storage account that a secret is for: its name says so, or is it."""
    before, after = _AZURE_SECRET
    for line in secret.split("\n"):
        account = line.partition(before)[2].rpartition(after)[0]
        if account:
            return account
    return secret


def gce_disk(disk: str, zone: str = "") -> str:
    """The handle of a disk of GCE in one zone."""
    return f"projects/{_UNKNOWN}/zones/{zone or _UNKNOWN}/disks/{disk}"


def _aws(volume: PersistentVolume) -> str:
    return aws_volume(text(volume.spec.aws_elastic_block_store, "volumeID"))


def _azure_disk(volume: PersistentVolume) -> str:
    source = volume.spec.azure_disk
    return text(source, "diskURI") if is_managed(source) else ""


def _azure_file(volume: PersistentVolume) -> str:
    source, ref = volume.spec.azure_file, volume.spec.claim_ref
    secret = text(source, "secretName")
    namespace = text(source, "secretNamespace") or (ref.namespace if ref is not None else "")
    if not namespace:
        return ""
    group, share = volume.annotations.get(RESOURCE_GROUP, ""), text(source, "shareName")
    return f"{group}#{azure_account(secret)}#{share}#{volume.name}#{namespace}"


def _gce(volume: PersistentVolume) -> str:
    disk = text(volume.spec.gce_persistent_disk, "pdName")
    label = next((volume.labels[key] for key in ZONES if volume.labels.get(key)), "")
    zones = label.split(_SEVERAL)
    if len(zones) == 1:
        return gce_disk(disk, label)
    regions = {zone.rpartition("-")[0] for zone in zones if zone.count("-") == 2}
    if len(regions) != 1 or any(zone.count("-") != 2 for zone in zones):
        return ""
    return f"projects/{_UNKNOWN}/regions/{regions.pop()}/disks/{disk}"


_HANDLES: Mapping[str, Callable[[PersistentVolume], str]] = {
    "kubernetes.io/aws-ebs": _aws,
    "kubernetes.io/azure-disk": _azure_disk,
    "kubernetes.io/azure-file": _azure_file,
    "kubernetes.io/cinder": lambda volume: text(volume.spec.cinder, "volumeID"),
    "kubernetes.io/gce-pd": _gce,
    "kubernetes.io/portworx-volume": lambda volume: text(volume.spec.portworx_volume, "volumeID"),
    "kubernetes.io/vsphere-volume": lambda volume: text(volume.spec.vsphere_volume, "volumePath"),
}
