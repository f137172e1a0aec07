"""Annotations and finalizers of migrated plugins on volumes and claims."""

import pytest

from kcm_cli.planning.volumes.migration import claim_annotations, volume_annotations, volume_finalizers
from tests.unit.planning.volumes.objects import volume

BY, TO = "pv.kubernetes.io/provisioned-by", "pv.kubernetes.io/migrated-to"
ASKED, OLD_ASKED = "volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner"
EBS, EBS_DRIVER = "kubernetes.io/aws-ebs", "ebs.csi.aws.com"
HOST_PATH = "kubernetes.io/host-path"
OURS, THEIRS = "kubernetes.io/pv-controller", "external-provisioner.volume.kubernetes.io/finalizer"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({BY: EBS}, {BY: EBS, TO: EBS_DRIVER}, id="migrated"),
        pytest.param({BY: EBS, TO: "old"}, {BY: EBS, TO: EBS_DRIVER}, id="to another driver"),
        pytest.param({BY: HOST_PATH, TO: "x"}, {BY: HOST_PATH}, id="not migrated"),
        pytest.param({TO: "x"}, {TO: "x"}, id="nobody's"),
        pytest.param({BY: "example.com/x"}, {BY: "example.com/x"}, id="external"),
    ],
)
def test_a_volume_is_annotated_with_its_migration(given, expected):
    assert volume_annotations(given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({ASKED: EBS}, {ASKED: EBS, TO: EBS_DRIVER}, id="asked"),
        pytest.param({OLD_ASKED: EBS}, {OLD_ASKED: EBS, TO: EBS_DRIVER}, id="asked as of old"),
        pytest.param({ASKED: "x.y", OLD_ASKED: EBS}, {ASKED: "x.y", OLD_ASKED: EBS}, id="the newer one counts"),
        pytest.param({BY: EBS}, {BY: EBS}, id="not asked"),
    ],
)
def test_a_claim_is_annotated_with_its_migration(given, expected):
    assert claim_annotations(given) == expected


@pytest.mark.parametrize(
    ("by", "policy", "finalizers", "expected"),
    [
        pytest.param(HOST_PATH, "Delete", ["a"], ("a", OURS), id="ours to delete"),
        pytest.param(HOST_PATH, "Delete", [THEIRS], (OURS,), id="no longer an external provisioner's"),
        pytest.param(HOST_PATH, "Retain", [OURS, "a"], ("a",), id="ours to keep"),
        pytest.param(HOST_PATH, "Recycle", [OURS], (), id="ours to recycle"),
        pytest.param(EBS, "Delete", [OURS, THEIRS], (THEIRS,), id="migrated"),
        pytest.param("example.com/x", "Delete", [OURS, THEIRS], (OURS, THEIRS), id="external"),
        pytest.param("", "Delete", [OURS, THEIRS], (OURS, THEIRS), id="not provisioned"),
    ],
)
def test_finalizers_match_the_deleter_of_the_volume(by, policy, finalizers, expected):
    annotations = {BY: by} if by else {}
    given = volume(
        persistentVolumeReclaimPolicy=policy, metadata={"annotations": annotations, "finalizers": finalizers}
    )
    assert volume_finalizers(given) == expected


def test_a_volume_that_is_being_deleted_gets_no_finalizer():
    metadata = {"annotations": {BY: HOST_PATH}, "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a"]}
    assert volume_finalizers(volume(persistentVolumeReclaimPolicy="Delete", metadata=metadata)) == ("a",)
