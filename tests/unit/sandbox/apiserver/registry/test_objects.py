"""Checks of an object's metadata before admission."""

from kcm_cli.sandbox.apiserver.registry.objects import drop_repeated_owners


def owner(uid, **more):
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": uid, **more}


def test_equal_owner_references_are_kept_once_in_any_order_of_their_fields():
    swapped = dict(reversed(owner("1").items()))
    meta = {"ownerReferences": [owner("1"), owner("2"), swapped, owner("1", controller=True), owner("2")]}
    warnings = []
    drop_repeated_owners(meta, warnings, mutated=False)
    assert meta["ownerReferences"] == [owner("1"), owner("2"), owner("1", controller=True)]
    assert len(warnings) == 1
    assert warnings[0].endswith("duplicate UID(s) observed: 1, 2")


def test_owner_references_that_differ_stay_without_a_warning():
    owners = [owner("1"), owner("2")]
    meta, warnings = {"ownerReferences": owners}, []
    drop_repeated_owners(meta, warnings, mutated=False)
    assert meta["ownerReferences"] is owners
    assert warnings == []
