"""Inline volumes of pods, translated for the CSI drivers that replace their plugins."""

from typing import Any

import pytest

from kcm_cli.api.core import PODS, Pod
from kcm_cli.machinery import codec
from kcm_cli.planning.volumes.attachable import may_be_attached, of_pod_volume
from kcm_cli.planning.volumes.inline import Inline, inline


def pod(source: dict[str, Any]) -> Pod:
    doc = {"metadata": {"name": "p", "namespace": "ns"}, "spec": {"volumes": [{"name": "v", **source}]}}
    return PODS.decode(codec.encode(doc))


def spec(driver: str, handle: str, mode: str = "ReadWriteOnce", **csi: Any) -> dict[str, Any]:
    source = {"driver": driver, "volumeHandle": handle, **csi}
    return {"csi": source, "accessModes": [mode], "volumeMode": "Filesystem"}


EBS, DISK, FILE = "ebs.csi.aws.com", "disk.csi.azure.com", "file.csi.azure.com"
CINDER, GCE, PORTWORX, VSPHERE = (
    "cinder.csi.openstack.org",
    "pd.csi.storage.gke.io",
    "pxd.portworx.com",
    "csi.vsphere.vmware.com",
)
GCE_DISK = "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"
CASES = [
    pytest.param({"awsElasticBlockStore": {"volumeID": "aws://us-east-1a/vol-1", "fsType": "ext4", "partition": 2}},
                 f"{EBS}-vol-1", spec(EBS, "vol-1", fsType="ext4", volumeAttributes={"partition": "2"}), id="aws"),
    pytest.param({"awsElasticBlockStore": {"volumeID": "vol-1", "readOnly": True}}, f"{EBS}-vol-1",
                 spec(EBS, "vol-1", readOnly=True, volumeAttributes={"partition": "0"}), id="aws, read only"),
    pytest.param({"azureDisk": {"diskName": "n", "diskURI": "/uri"}}, "/uri",
                 spec(DISK, "/uri", volumeAttributes={"kind": "Managed"}), id="azure disk"),
    pytest.param({"azureDisk": {"diskName": "n", "diskURI": "/uri", "kind": "managed", "fsType": "xfs",
                                "cachingMode": "None", "readOnly": True}}, "/uri",
                 spec(DISK, "/uri", readOnly=True, fsType="xfs",
                      volumeAttributes={"kind": "Managed", "cachingmode": "None", "fstype": "xfs"}),
                 id="azure disk, all of it"),
    pytest.param({"azureFile": {"secretName": "azure-storage-account-acc-secret", "shareName": "s"}}, "#acc#s#v#ns",
                 spec(FILE, "#acc#s#v#ns", "ReadWriteMany", volumeAttributes={"sharename": "s"},
                      nodeStageSecretRef={"name": "azure-storage-account-acc-secret", "namespace": "ns"}),
                 id="azure file"),
    pytest.param({"azureFile": {"secretName": "mine", "shareName": "s", "readOnly": True}}, "#mine#s#v#ns",
                 spec(FILE, "#mine#s#v#ns", "ReadWriteMany", readOnly=True, volumeAttributes={"sharename": "s"},
                      nodeStageSecretRef={"name": "mine", "namespace": "ns"}), id="azure file, another secret"),
    pytest.param({"cinder": {"volumeID": "c", "fsType": "ext4"}}, f"{CINDER}-c", spec(CINDER, "c", fsType="ext4"),
                 id="cinder"),
    pytest.param({"gcePersistentDisk": {"pdName": "d", "partition": 3}}, f"{GCE}-d",
                 spec(GCE, GCE_DISK, volumeAttributes={"partition": "3"}), id="gce"),
    pytest.param({"gcePersistentDisk": {"pdName": "d", "readOnly": True}}, f"{GCE}-d",
                 spec(GCE, GCE_DISK, "ReadOnlyMany", readOnly=True, volumeAttributes={"partition": ""}),
                 id="gce, read only"),
    pytest.param({"portworxVolume": {"volumeID": "p", "fsType": "xfs", "readOnly": True}}, f"{PORTWORX}-p",
                 spec(PORTWORX, "p", "ReadOnlyMany", fsType="xfs"), id="portworx"),
    pytest.param({"vsphereVolume": {"volumePath": "[ds] x.vmdk", "storagePolicyName": "gold"}},
                 f"{VSPHERE}-[ds] x.vmdk",
                 spec(VSPHERE, "[ds] x.vmdk", volumeAttributes={"storagepolicyname": "gold"}), id="vsphere"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "name", "expected"), CASES)
def test_translated(source: dict[str, Any], name: str, expected: dict[str, Any]) -> None:
    subject = pod(source)
    driver, handle = expected["csi"]["driver"], expected["csi"]["volumeHandle"]
    assert inline(subject.spec.volumes[0], "ns") == Inline(name, driver, handle, expected)
    assert may_be_attached(subject)
    found = of_pod_volume(subject, subject.spec.volumes[0], lambda key: None, lambda key: None)
    assert found is not None and found.migrated and found.spec == expected
    assert (found.unique_name, found.name) == (f"kubernetes.io/csi/{driver}^{handle}", name)
    assert found.shared is (expected["accessModes"] != ["ReadWriteOnce"])


@pytest.mark.parametrize(
    "source",
    [
        {"emptyDir": {}},
        {"awsElasticBlockStore": {"volumeID": "aws://zone/other"}},
        {"azureDisk": {"diskName": "n", "diskURI": "/uri", "kind": "Dedicated"}},
        {"gcePersistentDisk": None},
        {"cinder": {}},
        {"cinder": {"volumeID": 3}},
    ],
)
def test_volumes_without_a_migrated_driver(source: dict[str, Any]) -> None:
    subject = pod(source)
    assert inline(subject.spec.volumes[0], "ns") is None
    assert of_pod_volume(subject, subject.spec.volumes[0], lambda key: None, lambda key: None) is None
