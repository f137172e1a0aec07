"""Classes of claims, and the default."""

import pytest

from kcm_cli.planning.volumes.classes import class_of_claim, default_class, says_class
from kcm_cli.planning.volumes.matching import why_unsatisfied
from tests.unit.planning.volumes.objects import claim, ref, storage_class, volume

BETA = "volume.beta.kubernetes.io/storage-class"


def default(name, created, key="storageclass.kubernetes.io/is-default-class", value="true"):
    metadata = {"annotations": {key: value}, "creationTimestamp": f"2026-01-{created:02}T00:00:00Z"}
    return storage_class(name, metadata=metadata)


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        pytest.param([], None, id="none"),
        pytest.param([storage_class("a")], None, id="not marked"),
        pytest.param([default("a", 1, value="false")], None, id="marked as none"),
        pytest.param([default("a", 1), default("b", 2)], "b", id="the youngest"),
        pytest.param([default("b", 1), default("a", 1)], "a", id="the first by name"),
        pytest.param([default("a", 1, "storageclass.beta.kubernetes.io/is-default-class")], "a", id="as of old"),
    ],
)
def test_the_default_class(classes, expected):
    found = default_class(classes)
    assert (found.name if found is not None else None) == expected


def test_a_claim_can_request_no_class():
    assert not says_class(claim(storageClassName=None))
    assert says_class(claim(storageClassName=""))
    assert says_class(claim(storageClassName=None, metadata={"annotations": {BETA: "a"}}))
    assert class_of_claim(claim(metadata={"annotations": {BETA: "a"}})) == "a"


@pytest.mark.parametrize(
    ("given", "wanted", "expected"),
    [
        pytest.param(volume(), claim(), "", id="fits"),
        pytest.param(
            volume(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
            claim(),
            'the volume is marked for deletion "v"',
            id="being deleted",
        ),
        pytest.param(volume(), claim(size="2Gi"), "requested PV is too small", id="small"),
        pytest.param(volume(size="30e18"), claim(size="20e18"), "", id="beyond 64 bits"),
        pytest.param(
            volume(size="20e18"), claim(size="30e18"), "requested PV is too small", id="small, beyond 64 bits"
        ),
        pytest.param(volume(), claim(storageClassName="tin"), "storageClassName does not match", id="class"),
        pytest.param(
            volume(),
            claim(volumeAttributesClassName="a"),
            "volumeAttributesClassName does not match",
            id="attributes",
        ),
        pytest.param(volume(), claim(volumeMode="Block"), "incompatible volumeMode", id="mode"),
        pytest.param(volume(), claim(accessModes=["ReadWriteMany"]), "incompatible accessMode", id="access modes"),
        pytest.param(volume(claimRef=ref("other"), phase="Released"), claim(), "", id="others look at that"),
    ],
)
def test_reasons_why_a_named_volume_does_not_match(given, wanted, expected):
    assert why_unsatisfied(given, wanted) == expected


def test_without_attributes_classes_no_volume_with_one_matches():
    text = "volumeAttributesClassName is not supported when the feature-gate VolumeAttributesClass is disabled"
    assert why_unsatisfied(volume(volumeAttributesClassName="a"), claim(), attributes_classes=False) == text
    assert why_unsatisfied(volume(), claim(volumeAttributesClassName="a"), attributes_classes=False) == text
    assert why_unsatisfied(volume(), claim(), attributes_classes=False) == ""
