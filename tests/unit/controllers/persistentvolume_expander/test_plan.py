"""The claims that are expanded, and their status."""

import pytest

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS
from kcm_cli.api.storage import PERSISTENT_VOLUMES
from kcm_cli.controllers.persistentvolume_expander import plan
from kcm_cli.machinery import codec
from kcm_cli.planning.volumes.migration import DRIVERS

SOURCES = {
    "kubernetes.io/aws-ebs": {"awsElasticBlockStore": {"volumeID": "v"}},
    "kubernetes.io/azure-disk": {"azureDisk": {"diskName": "d", "diskURI": "u"}},
    "kubernetes.io/azure-file": {"azureFile": {"shareName": "s", "secretName": "x"}},
    "kubernetes.io/cinder": {"cinder": {"volumeID": "v"}},
    "kubernetes.io/gce-pd": {"gcePersistentDisk": {"pdName": "p"}},
    "kubernetes.io/portworx-volume": {"portworxVolume": {"volumeID": "v"}},
    "kubernetes.io/vsphere-volume": {"vsphereVolume": {"volumePath": "p"}},
}
CSI = {"csi": {"driver": "d", "volumeHandle": "h"}}


def claim(asks="2Gi", has="1Gi", annotations=None):
    metadata = {"name": "c", "namespace": "d", "uid": "u", "resourceVersion": "7", "annotations": annotations}
    spec = {"resources": {"requests": {"storage": asks}}} if asks else {}
    doc = {"metadata": metadata, "spec": spec, "status": {"capacity": {"storage": has}} if has else {}}
    return PERSISTENT_VOLUME_CLAIMS.decode(codec.encode(doc))


def volume(source, ref=("d", "u"), annotations=None):
    spec = dict(source)
    if ref is not None:
        spec["claimRef"] = {"namespace": ref[0], "uid": ref[1]}
    return PERSISTENT_VOLUMES.decode(codec.encode({"metadata": {"annotations": annotations}, "spec": spec}))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (("1Gi", "1Gi"), ("2Gi", "1Gi"), True),
        (("2Gi", "1Gi"), ("2Gi", "2Gi"), True),
        (("1Gi", ""), ("1Gi", "1Gi"), True),
        (("2Gi", "1Gi"), ("1Gi", "1Gi"), False),
        (("1Gi", "1Gi"), ("1024Mi", "1073741824"), False),
        (("", ""), ("", ""), False),
    ],
    ids=["requests more", "has more", "has something", "requests less", "in other words", "nothing"],
)
def test_changes_that_count(old, new, expected):
    assert plan.has_grown(claim(*old), claim(*new)) is expected


@pytest.mark.parametrize(
    ("asks", "has", "annotations", "expected"),
    [
        ("2Gi", "1Gi", None, True),
        ("1Gi", "1Gi", None, False),
        ("1Gi", "2Gi", None, False),
        ("1Gi", "2Gi", {"volume.alpha.kubernetes.io/pre-resize-capacity": "1Gi"}, True),
    ],
    ids=["larger", "equal", "smaller", "has begun"],
)
def test_claims_that_are_expanded(asks, has, annotations, expected):
    assert plan.must_grow(claim(asks, has), volume(CSI, annotations=annotations)) is expected


@pytest.mark.parametrize(
    "ref", [None, ("d", "v"), ("e", "u")], ids=["without a claim", "an earlier claim's", "elsewhere"]
)
def test_a_volume_of_another_claim_is_an_error(ref):
    with pytest.raises(plan.NotBound, match="not bound to PVC being updated : d/c"):
        plan.must_grow(claim(), volume(CSI, ref))


def test_a_csi_volume_only_waits():
    notice = plan.waiting(claim(), volume(CSI))
    assert (notice.type, notice.reason) == ("Normal", "ExternalExpanding")
    assert notice.message == "waiting for an external controller to expand this PVC"
    assert plan.plan_resizer(claim(), volume(CSI)) is None


@pytest.mark.parametrize("plugin", SOURCES)
def test_a_migrated_volume_names_its_driver(plugin):
    moved, driver = volume(SOURCES[plugin]), DRIVERS[plugin]
    text = f"CSI migration enabled for {plugin}; waiting for external resizer to expand the pvc"
    assert plan.waiting(claim(), moved).message == text
    patch = plan.plan_resizer(claim(), moved)
    assert patch.body == {
        "metadata": {
            "annotations": {"volume.kubernetes.io/storage-resizer": driver},
            "resourceVersion": "7",
            "uid": "u",
        }
    }
    assert patch.subresource == "status"
    assert plan.plan_resizer(claim(annotations={"volume.kubernetes.io/storage-resizer": driver}), moved) is None


def test_every_driver_has_its_source():
    assert SOURCES.keys() == DRIVERS.keys()
