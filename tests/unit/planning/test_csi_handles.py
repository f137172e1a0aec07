"""The handles of migrated volumes."""

import pytest

from kcm_cli.api.storage import PERSISTENT_VOLUMES
from kcm_cli.machinery import codec
from kcm_cli.planning.csi_handles import migrated_handle, migrated_modes
from kcm_cli.planning.volumes.migration import migrated_plugin


def volume(source, modes=("ReadWriteOnce",), **metadata):
    doc = {"metadata": {"name": "v", **metadata}, "spec": {"accessModes": list(modes), **source}}
    return PERSISTENT_VOLUMES.decode(codec.encode(doc))


def zones(text, key="topology.kubernetes.io/zone"):
    return volume({"gcePersistentDisk": {"pdName": "disk"}}, labels={key: text})


def share(claim="d", **more):
    source = {"azureFile": {"secretName": "azure-storage-account-acc-secret", "shareName": "share", **more}}
    return volume({**source, "claimRef": {"namespace": claim}} if claim else source)


@pytest.mark.parametrize(
    ("moved", "expected"),
    [
        (volume({"awsElasticBlockStore": {"volumeID": "vol-1"}}), "vol-1"),
        (volume({"awsElasticBlockStore": {"volumeID": "aws://us-east-1a/vol-1"}}), "vol-1"),
        (volume({"awsElasticBlockStore": {"volumeID": "aws:///vol-1"}}), "vol-1"),
        (volume({"awsElasticBlockStore": {"volumeID": "aws://us-east-1a/other"}}), ""),
        (volume({"azureDisk": {"diskURI": "/uri", "diskName": "n"}}), "/uri"),
        (volume({"azureDisk": {"diskURI": "/uri", "diskName": "n", "kind": "Managed"}}), "/uri"),
        (volume({"azureDisk": {"diskURI": "/uri", "diskName": "n", "kind": "Shared"}}), ""),
        (share(), "#acc#share#v#d"),
        (share(secretNamespace="s"), "#acc#share#v#s"),
        (share(secretName="mine"), "#mine#share#v#d"),
        (share(""), ""),
        (volume({"cinder": {"volumeID": "c"}}), "c"),
        (volume({"portworxVolume": {"volumeID": "p"}}), "p"),
        (volume({"vsphereVolume": {"volumePath": "[ds] x.vmdk"}}), "[ds] x.vmdk"),
        (volume({"gcePersistentDisk": {"pdName": "disk"}}), "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/disk"),
        (zones("us-a1-b"), "projects/UNSPECIFIED/zones/us-a1-b/disks/disk"),
        (zones("z", "failure-domain.beta.kubernetes.io/zone"), "projects/UNSPECIFIED/zones/z/disks/disk"),
        (zones("us-a1-b__us-a1-c"), "projects/UNSPECIFIED/regions/us-a1/disks/disk"),
        (zones("us-a1-b__us-a2-c"), ""),
        (zones("us-a1-b__odd"), ""),
        (volume({"csi": {"driver": "d", "volumeHandle": "h"}}), ""),
    ],
)
def test_handles(moved, expected):
    assert migrated_handle(migrated_plugin(moved), moved) == expected


@pytest.mark.parametrize(
    ("modes", "expected"),
    [
        (("ReadWriteMany",), ("ReadWriteOnce",)),
        (("ReadOnlyMany",), ("ReadOnlyMany",)),
        (("ReadOnlyMany", "ReadWriteOnce"), ("ReadWriteOnce",)),
        ((), ()),
    ],
)
def test_gce_disks_have_one_writer(modes, expected):
    disk = volume({"gcePersistentDisk": {"pdName": "disk"}}, modes)
    assert migrated_modes("kubernetes.io/gce-pd", disk) == expected
    assert migrated_modes("kubernetes.io/cinder", disk) == modes
