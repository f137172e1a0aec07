"""Inline volumes of migrated in-tree plugins: the PersistentVolume spec that their CSI drivers attach.

An inline volume has no PersistentVolume; the spec of the one that it would have is written into its VolumeAttachment.
Migration is complete for all of these plugins, so that CSINodes are not checked for it.

upstream: staging/src/k8s.io/csi-translation-lib/plugins#TranslateInTreeInlineVolumeToCSI
"""

from collections.abc import Mapping

import msgspec

from kcm_cli.api.core import Volume
from kcm_cli.machinery.codec import Doc
from kcm_cli.planning.csi_handles import aws_volume, azure_account, gce_disk, is_managed, text
from kcm_cli.planning.volumes.migration import DRIVERS


class Inline(msgspec.Struct, frozen=True):
    """``name``: of the PersistentVolume that there would be; ``spec``: its spec."""

    name: str
    driver: str
    handle: str
    spec: Doc


def inline(volume: Volume, namespace: str) -> Inline | None:
    """The Inline of a pod's volume; None for other kinds, and where the source does not identify a volume."""
    if volume.aws_elastic_block_store is not None:
        return _aws(volume.aws_elastic_block_store)
    if volume.azure_disk is not None:
        return _azure_disk(volume.azure_disk)
    if volume.azure_file is not None:
        return _azure_file(volume.azure_file, volume.name, namespace)
    if volume.cinder is not None:
        return _cinder(volume.cinder)
    if volume.gce_persistent_disk is not None:
        return _gce(volume.gce_persistent_disk)
    if volume.portworx_volume is not None:
        return _portworx(volume.portworx_volume)
    if volume.vsphere_volume is not None:
        return _vsphere(volume.vsphere_volume)
    return None


def _aws(source: Doc) -> Inline | None:
    handle = aws_volume(text(source, "volumeID"))
    attributes = {"partition": str(_number(source, "partition"))}
    return _made("kubernetes.io/aws-ebs", handle, source, attributes)


def _azure_disk(source: Doc) -> Inline | None:
    if not is_managed(source):
        return None
    attributes = {"kind": "Managed"}
    if caching := text(source, "cachingMode"):
        attributes["cachingmode"] = caching
    if kind := text(source, "fsType"):
        attributes["fstype"] = kind
    uri = text(source, "diskURI")
    return _made("kubernetes.io/azure-disk", uri, source, attributes, name=uri)


def _azure_file(source: Doc, volume: str, namespace: str) -> Inline | None:
    secret, share = text(source, "secretName"), text(source, "shareName")
    handle = f"#{azure_account(secret)}#{share}#{volume}#{namespace}"
    made = _made("kubernetes.io/azure-file", handle, source, {"sharename": share}, name=handle, mode="ReadWriteMany")
    if made is None:
        return None
    csi = made.spec["csi"]
    assert isinstance(csi, dict)
    return Inline(
        made.name,
        made.driver,
        handle,
        {**made.spec, "csi": {**csi, "nodeStageSecretRef": {"name": secret, "namespace": namespace}}},
    )


def _cinder(source: Doc) -> Inline | None:
    return _made("kubernetes.io/cinder", text(source, "volumeID"), source)


def _gce(source: Doc) -> Inline | None:
    disk, partition = text(source, "pdName"), _number(source, "partition")
    attributes = {"partition": str(partition) if partition else ""}
    mode = "ReadOnlyMany" if source.get("readOnly") is True else "ReadWriteOnce"
    driver = DRIVERS["kubernetes.io/gce-pd"]
    handle = gce_disk(disk) if disk else ""
    return _made("kubernetes.io/gce-pd", handle, source, attributes, name=f"{driver}-{disk}", mode=mode)


def _portworx(source: Doc) -> Inline | None:
    """Read-only ones differ in their access mode alone."""
    mode = "ReadOnlyMany" if source.get("readOnly") is True else "ReadWriteOnce"
    plain = {key: value for key, value in source.items() if key != "readOnly"}
    return _made("kubernetes.io/portworx-volume", text(source, "volumeID"), plain, mode=mode)


def _vsphere(source: Doc) -> Inline | None:
    policy = text(source, "storagePolicyName")
    attributes = {"storagepolicyname": policy} if policy else {}
    return _made("kubernetes.io/vsphere-volume", text(source, "volumePath"), source, attributes)


def _made(
    plugin: str,
    handle: str,
    source: Doc,
    attributes: Mapping[str, str] | None = None,
    *,
    name: str = "",
    mode: str = "ReadWriteOnce",
) -> Inline | None:
    """The fields that all kinds have: empty ones are left out."""
    if not handle:
        return None
    driver = DRIVERS[plugin]
    csi: Doc = {"driver": driver, "volumeHandle": handle}
    if source.get("readOnly") is True:
        csi["readOnly"] = True
    if kind := text(source, "fsType"):
        csi["fsType"] = kind
    if attributes:
        csi["volumeAttributes"] = dict(attributes)
    spec: Doc = {"csi": csi, "accessModes": [mode], "volumeMode": "Filesystem"}
    return Inline(name or f"{driver}-{handle}", driver, handle, spec)


def _number(source: Doc, field: str) -> int:
    value = source.get(field)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
