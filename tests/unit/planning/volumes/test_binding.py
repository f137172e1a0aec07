"""The writes of binding and unbinding."""

import pytest

from kcm_cli.machinery import codec
from kcm_cli.planning.volumes import binding
from kcm_cli.planning.volumes.names import BIND_COMPLETED, BOUND_BY_CONTROLLER, PRE_RESIZE_CAPACITY, SELECTED_NODE
from tests.unit.planning.volumes.objects import claim, ref, volume, with_changes

MINE = ref(uid="uid-c")


def bound(wanted, given):
    """All four writes, one after the other."""
    given = with_changes(given, binding.volume_pointer(given, wanted))
    given = with_changes(given, binding.volume_phase(given, "Bound"))
    wanted = with_changes(wanted, binding.claim_pointer(wanted, given))
    return with_changes(wanted, binding.bound_status(wanted, given)), given


@pytest.mark.parametrize(
    ("given", "wanted", "by_us"),
    [
        pytest.param(volume(), claim(), (True, True), id="found by the controller"),
        pytest.param(volume(claimRef=ref()), claim(), (False, True), id="volume kept for the claim"),
        pytest.param(volume(), claim(volumeName="v"), (True, False), id="claim names the volume"),
        pytest.param(volume(claimRef=ref()), claim(volumeName="v"), (False, False), id="both"),
    ],
)
def test_a_binding_names_the_half_set_by_the_controller(given, wanted, by_us):
    wanted, given = bound(wanted, given)
    assert (BOUND_BY_CONTROLLER in given.annotations, BOUND_BY_CONTROLLER in wanted.annotations) == by_us
    assert (given.spec.claim_ref.uid, given.status.phase) == (wanted.uid, "Bound")
    assert (wanted.spec.volume_name, wanted.status.phase) == ("v", "Bound")
    assert (wanted.status.capacity, wanted.status.access_modes) == ({"storage": "1Gi"}, ("ReadWriteOnce",))
    assert BIND_COMPLETED in wanted.annotations
    assert binding.is_complete(given, wanted)


def test_a_binding_is_written_once():
    wanted, given = bound(claim(), volume())
    assert not binding.volume_pointer(given, wanted)
    assert not binding.volume_phase(given, "Bound")
    assert not binding.claim_pointer(wanted, given)
    assert not binding.bound_status(wanted, given)


@pytest.mark.parametrize("done", range(4))
def test_a_partial_binding_is_completed(done):
    wanted, given = claim(), volume()
    if done > 0:
        given = with_changes(given, binding.volume_pointer(given, wanted))
    if done > 1:
        given = with_changes(given, binding.volume_phase(given, "Bound"))
    if done > 2:
        wanted = with_changes(wanted, binding.claim_pointer(wanted, given))
    assert not binding.is_complete(given, wanted)
    after = bound(wanted, given)
    whole = bound(claim(), volume())
    assert [codec.decode_doc(each.raw) for each in after] == [codec.decode_doc(each.raw) for each in whole]


def test_unknown_fields_are_kept():
    given = volume(metadata={"annotations": {"a": "b"}}, unheardOf={"x": [1]})
    _, after = bound(claim(), given)
    assert codec.decode_doc(after.raw)["spec"]["unheardOf"] == {"x": [1]}
    assert after.annotations["a"] == "b"


def test_a_bound_claim_keeps_the_size_of_its_file_system():
    wanted = claim(status={"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]})
    assert not binding.bound_status(wanted, volume(size="5Gi"))


@pytest.mark.parametrize(
    ("annotation", "expected"), [pytest.param("1Gi", "1Gi", id="size before"), pytest.param("odd", "5Gi", id="no size")]
)
def test_an_expanding_volume_has_its_former_size(annotation, expected):
    given = volume(size="5Gi", metadata={"annotations": {PRE_RESIZE_CAPACITY: annotation}})
    assert with_changes(claim(), binding.bound_status(claim(), given)).status.capacity == {"storage": expected}


def test_a_volume_without_a_size_binds_nothing():
    with pytest.raises(binding.NoCapacity, match='PersistentVolume "v" is without a storage capacity'):
        binding.bound_status(claim(), volume(capacity={"other": "1"}))


def test_attributes_are_copied_when_the_claim_is_bound():
    given = volume(volumeAttributesClassName="fast")
    after = with_changes(claim(), binding.bound_status(claim(), given))
    assert after.status.current_volume_attributes_class_name == "fast"
    without = with_changes(claim(), binding.bound_status(claim(), given, attributes_classes=False))
    assert without.status.current_volume_attributes_class_name is None
    lost = claim(status={"phase": "Lost"})
    assert with_changes(lost, binding.bound_status(lost, given)).status.current_volume_attributes_class_name is None


def test_a_claim_that_loses_its_volume_has_no_size():
    status = {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    had = claim(status={**status, "currentVolumeAttributesClassName": "fast"})
    after = with_changes(had, binding.unbound_status(had, "Lost"))
    assert codec.decode_doc(after.raw)["status"] == {"phase": "Lost"}
    assert not binding.unbound_status(after, "Lost")


def test_the_controllers_reference_is_removed_and_of_a_users_only_the_uid():
    ours = volume(claimRef=MINE, metadata={"annotations": {BOUND_BY_CONTROLLER: "yes", "a": "b"}})
    after = with_changes(ours, binding.release(ours))
    assert (after.spec.claim_ref, after.annotations) == (None, {"a": "b"})
    only = volume(claimRef=MINE, metadata={"annotations": {BOUND_BY_CONTROLLER: "yes"}})
    assert "annotations" not in codec.decode_doc(with_changes(only, binding.release(only)).raw)["metadata"]
    theirs = volume(claimRef=MINE)
    after = with_changes(theirs, binding.release(theirs))
    assert (after.spec.claim_ref.name, after.spec.claim_ref.uid) == ("c", "")


def test_a_provisioner_is_named_in_both_annotations_after_migration():
    asked = with_changes(claim(), binding.claim_provisioner(claim(), "example.com/x"))
    assert asked.annotations == {
        "volume.beta.kubernetes.io/storage-provisioner": "example.com/x",
        "volume.kubernetes.io/storage-provisioner": "example.com/x",
    }
    assert not binding.claim_provisioner(asked, "example.com/x")


def test_the_selected_node_is_removed():
    selected = claim(metadata={"annotations": {SELECTED_NODE: "n", "a": "b"}})
    assert with_changes(selected, binding.without_node(selected)).annotations == {"a": "b"}
    assert not binding.without_node(claim())
