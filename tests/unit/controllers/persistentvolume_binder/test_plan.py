"""Decisions about claims and volumes."""

import pytest

from kcm_cli.controllers.persistentvolume_binder import plan
from kcm_cli.controllers.persistentvolume_binder.plan import (
    AssignClass,
    Bind,
    Lose,
    Mismatch,
    Pend,
    Provision,
    Reclaim,
    Refuse,
    SetPhase,
    Simple,
    Snapshot,
)
from tests.unit.planning.volumes.objects import claim, ref, volume

DONE = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
BY_US = {"annotations": {"pv.kubernetes.io/bound-by-controller": "yes"}}
NODE = {"annotations": {"volume.kubernetes.io/selected-node": "n"}}
MADE = {"annotations": {"pv.kubernetes.io/provisioned-by": "example.com/x"}}
MINE = ref(uid="uid-c")
V = volume()
OTHERS = volume(claimRef=ref("other", uid="o"))


@pytest.mark.parametrize(
    ("snapshot", "kind", "reason"),
    [
        pytest.param(Snapshot(claim(), V), Bind, "", id="found"),
        pytest.param(Snapshot(claim()), Provision, "", id="to be provisioned"),
        pytest.param(Snapshot(claim(storageClassName="")), Pend, "FailedBinding", id="no class"),
        pytest.param(Snapshot(claim(storageClassName=None), default="d"), AssignClass, "", id="default"),
        pytest.param(Snapshot(claim(), delayed=True), Pend, "WaitForFirstConsumer", id="no consumer"),
        pytest.param(Snapshot(claim(), delayed=True, waiting_pods=("p",)), Pend, "WaitForPodScheduled", id="no node"),
        pytest.param(Snapshot(claim(metadata=NODE), delayed=True), Provision, "", id="node"),
        pytest.param(Snapshot(claim(volumeName="v"), V), Bind, "", id="named"),
        pytest.param(Snapshot(claim(volumeName="v")), Pend, "", id="named, not there"),
        pytest.param(Snapshot(claim(size="9Gi", volumeName="v"), V), Pend, "VolumeMismatch", id="named, too small"),
        pytest.param(
            Snapshot(
                claim(volumeName="v", volumeAttributesClassName="a"),
                volume(volumeAttributesClassName="a"),
                attributes_classes=True,
            ),
            Bind,
            "",
            id="named, attributes",
        ),
        pytest.param(
            Snapshot(
                claim(volumeName="v", volumeAttributesClassName="a"),
                volume(volumeAttributesClassName="a"),
                attributes_classes=False,
            ),
            Pend,
            "VolumeMismatch",
            id="named, without gate",
        ),
        pytest.param(Snapshot(claim(volumeName="v"), volume(claimRef=ref())), Bind, "", id="named, kept for it"),
        pytest.param(Snapshot(claim(volumeName="v"), OTHERS), Pend, "FailedBinding", id="named, taken"),
        pytest.param(Snapshot(claim(volumeName="v", metadata=BY_US), OTHERS), Refuse, "FailedBinding", id="undone"),
        pytest.param(Snapshot(claim(volumeName="v", metadata=DONE), volume(claimRef=MINE)), Bind, "", id="bound"),
        pytest.param(Snapshot(claim(volumeName="v", metadata=DONE), V), Bind, "", id="bound, half undone"),
        pytest.param(Snapshot(claim(metadata=DONE)), Lose, "ClaimLost", id="pointer lost"),
        pytest.param(Snapshot(claim(volumeName="v", metadata=DONE)), Lose, "ClaimLost", id="volume lost"),
        pytest.param(Snapshot(claim(volumeName="v", metadata=DONE), OTHERS), Lose, "ClaimMisbound", id="misbound"),
    ],
)
def test_a_claim(snapshot, kind, reason):
    decision = plan.plan_claim(snapshot)
    event = getattr(decision, "event", None)
    assert (type(decision), event.reason if event is not None else "") == (kind, reason)


def test_all_waiting_pods_are_named():
    decision = plan.plan_claim(Snapshot(claim(), delayed=True, waiting_pods=("a", "b")))
    assert decision == Pend(plan.Event("Normal", "WaitForPodScheduled", "waiting for pods a,b to be scheduled"))


RELEASED = volume(claimRef=MINE, phase="Released")
FAILED = volume(claimRef=MINE, phase="Failed")
BOUND = volume(claimRef=MINE, phase="Bound")
ELSEWHERE = claim(volumeName="w")
REMADE = claim(metadata={"uid": "new"})


@pytest.mark.parametrize(
    ("given", "of_it", "asked", "expected"),
    [
        pytest.param(volume(), None, False, SetPhase("Available"), id="free"),
        pytest.param(volume(claimRef=ref()), None, False, SetPhase("Available"), id="kept by name"),
        pytest.param(BOUND, claim(volumeName="v"), False, SetPhase("Bound"), id="bound"),
        pytest.param(BOUND, None, False, Simple.ASK, id="claim not in the cache"),
        pytest.param(BOUND, None, True, Reclaim(False), id="claim deleted"),
        pytest.param(RELEASED, None, False, Reclaim(True), id="known to be released"),
        pytest.param(FAILED, None, False, Reclaim(True), id="failed, again"),
        pytest.param(BOUND, REMADE, False, Simple.ASK, id="claim remade, it seems"),
        pytest.param(BOUND, REMADE, True, Reclaim(False), id="claim remade"),
        pytest.param(RELEASED, REMADE, False, Reclaim(True), id="known to be released, claim remade"),
        pytest.param(BOUND, claim(), False, Simple.CLAIM_FIRST, id="claim not bound yet"),
        pytest.param(BOUND, ELSEWHERE, False, Simple.UNBIND, id="claim has another"),
        pytest.param(
            volume(claimRef=MINE, phase="Bound", metadata=MADE, persistentVolumeReclaimPolicy="Delete"),
            ELSEWHERE,
            False,
            Reclaim(False),
            id="provisioned for a claim that has another",
        ),
        pytest.param(
            volume(claimRef=MINE, phase="Bound", metadata=MADE, persistentVolumeReclaimPolicy="Retain"),
            ELSEWHERE,
            False,
            Simple.UNBIND,
            id="provisioned for a claim that has another, retained",
        ),
    ],
)
def test_a_volume(given, of_it, asked, expected):
    assert plan.plan_volume(given, of_it, asked=asked) == expected


def test_a_volume_of_another_mode_is_reported_on_both_objects():
    decision = plan.plan_volume(volume(claimRef=MINE, volumeMode="Block"), claim())
    assert isinstance(decision, Mismatch)
    assert decision.volume.message == (
        'Cannot bind PersistentVolume to requested PersistentVolumeClaim "c" due to incompatible volumeMode.'
    )
    assert decision.claim.message == (
        'Cannot bind PersistentVolume "v" to requested PersistentVolumeClaim due to incompatible volumeMode.'
    )


@pytest.mark.parametrize(
    ("given", "of_it", "expected"),
    [
        pytest.param(volume(), None, True, id="free"),
        pytest.param(volume(phase="Pending"), None, False, id="new"),
        pytest.param(
            volume(claimRef=MINE, phase="Released", persistentVolumeReclaimPolicy="Retain"), None, True, id="kept"
        ),
        pytest.param(
            volume(claimRef=MINE, phase="Released", persistentVolumeReclaimPolicy="Retain"),
            REMADE,
            True,
            id="kept, claim remade",
        ),
        pytest.param(
            volume(claimRef=MINE, phase="Released", persistentVolumeReclaimPolicy="Delete"), None, False, id="to delete"
        ),
        pytest.param(BOUND, claim(volumeName="v"), True, id="bound"),
        pytest.param(BOUND, None, False, id="claim deleted"),
    ],
)
def test_volumes_that_are_not_changed(given, of_it, expected):
    assert plan.is_settled(given, of_it) == expected


@pytest.mark.parametrize(
    ("given", "of_it", "expected"),
    [
        pytest.param(volume(), None, False, id="free"),
        pytest.param(volume(claimRef=ref()), None, False, id="kept by name"),
        pytest.param(BOUND, None, True, id="claim deleted"),
        pytest.param(BOUND, REMADE, True, id="claim remade"),
        pytest.param(BOUND, claim(), False, id="claim not bound yet"),
        pytest.param(BOUND, claim(volumeName="v"), False, id="bound"),
        pytest.param(BOUND, ELSEWHERE, True, id="claim has another"),
    ],
)
def test_volumes_that_can_be_recycled(given, of_it, expected):
    assert plan.is_released(given, of_it) == expected
