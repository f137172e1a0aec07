"""The decision about an object, and its patches."""

import pytest

from kcm_cli.api.well_known import FOREGROUND
from kcm_cli.controllers.garbage_collector import plan
from kcm_cli.controllers.garbage_collector.graph import ORPHAN, Identity, Node
from kcm_cli.controllers.garbage_collector.plan import Disown, Fate, Keep, Owner, Remove
from kcm_cli.machinery.meta import ObjectMeta, OwnerReference

S, D, W = Owner.SOLID, Owner.DANGLING, Owner.WAITING


def refs(*uids: str, block: bool | None = None) -> tuple[OwnerReference, ...]:
    return tuple(OwnerReference("v1", "ConfigMap", uid, uid, block_owner_deletion=block) for uid in uids)


def node(*dependents: bool) -> Node:
    """An object with dependents, of which those marked wait for their own."""
    found = {
        str(number): Node(Identity("Pod", "v1", "ns", str(number), str(number)), deleting_dependents=waiting)
        for number, waiting in enumerate(dependents)
    }
    return Node(Identity("Pod", "v1", "ns", "p", "p"), held=found)


@pytest.mark.parametrize(
    ("states", "dependents", "expected"),
    [
        pytest.param([], [], Keep(), id="no owner"),
        pytest.param([S], [], Keep(), id="a living owner"),
        pytest.param([S, S], [False], Keep(), id="two living owners"),
        pytest.param([S, D], [], Disown(("1",)), id="one of two is absent"),
        pytest.param([D, S, W], [True], Disown(("0", "2")), id="waiting owners count as absent"),
        pytest.param([W, S], [], Disown(("0",)), id="a living owner outweighs one that waits"),
        pytest.param([D], [], Remove("Background"), id="absent"),
        pytest.param([D, D], [False], Remove("Background"), id="all absent, with dependents"),
        pytest.param([W], [], Remove("Background"), id="owner waits, no dependents"),
        pytest.param([W], [False], Remove("Foreground"), id="owner waits, with dependents"),
        pytest.param([D, W], [False, False], Remove("Foreground"), id="one absent, one waits"),
        pytest.param([W], [False, True], Remove("Foreground", unblock=True), id="may be a cycle"),
        pytest.param([D], [True], Remove("Background"), id="no cycle without an owner that waits"),
    ],
)
def test_verdicts(states: list[Owner], dependents: list[bool], expected: Fate) -> None:
    meta = ObjectMeta(owner_references=refs(*map(str, range(len(states)))))
    assert plan.plan(node(*dependents), meta, states) == expected


@pytest.mark.parametrize("states", [[S, D], [D, S]], ids=["good first", "bad first"])
def test_two_references_to_one_uid_are_distinguished(states: list[Owner]) -> None:
    """One of them names the owner wrongly: the object has an owner that lives and is not deleted."""
    assert plan.plan(node(), ObjectMeta(owner_references=refs("a", "a")), states) == Disown(("a",))


@pytest.mark.parametrize(
    ("finalizers", "expected"),
    [
        pytest.param((), "Background", id="none"),
        pytest.param(("x",), "Background", id="another finalizer"),
        pytest.param((FOREGROUND,), "Foreground", id="foreground"),
        pytest.param((ORPHAN,), "Orphan", id="orphan"),
        pytest.param((FOREGROUND, ORPHAN), "Orphan", id="orphan takes precedence"),
    ],
)
def test_the_objects_own_finalizers_are_honoured(finalizers: tuple[str, ...], expected: str) -> None:
    meta = ObjectMeta(owner_references=refs("a"), finalizers=finalizers)
    assert plan.plan(node(), meta, [D]) == Remove(expected)


def test_the_patch_that_removes_owners_names_object_and_owners() -> None:
    assert plan.disown("me", ("a", "b")) == {
        "metadata": {
            "uid": "me",
            "ownerReferences": [{"$patch": "delete", "uid": "a"}, {"$patch": "delete", "uid": "b"}],
        }
    }


def test_removing_owners_absent_in_the_cache_has_a_resource_version() -> None:
    references = [{"$patch": "delete", "uid": "a"}]
    expected = {"uid": "me", "resourceVersion": "7", "ownerReferences": references}
    assert plan.disown("me", ("a",), "7") == {"metadata": expected}


def test_a_merge_patch_keeps_other_references_unchanged() -> None:
    kept = OwnerReference("v1", "Pod", "k", "k", controller=True, block_owner_deletion=False)
    meta = ObjectMeta(resource_version="7", owner_references=(*refs("a"), kept, *refs("b")))
    whole = {"apiVersion": "v1", "kind": "Pod", "name": "k", "uid": "k"}
    assert plan.disown_whole(meta, ("a",)) == {
        "metadata": {
            "resourceVersion": "7",
            "ownerReferences": [
                whole | {"controller": True, "blockOwnerDeletion": False},
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "b", "uid": "b"},
            ],
        }
    }


def test_unblocking_changes_only_blocking_references() -> None:
    owners = (*refs("a", block=True), *refs("b", block=False), *refs("c"))
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "a", "blockOwnerDeletion": False}
    expected = {"uid": "me", "resourceVersion": "7", "ownerReferences": [reference]}
    assert plan.unblock("me", owners, "7") == {"metadata": expected}
    whole = plan.unblock_whole(ObjectMeta(resource_version="7", owner_references=owners))
    assert whole["metadata"]["resourceVersion"] == "7"  # type: ignore[index,call-overload]
    found = [(r["uid"], r["blockOwnerDeletion"]) for r in whole["metadata"]["ownerReferences"]]  # type: ignore[index,call-overload,union-attr]
    assert found == [("a", False), ("b", False), ("c", False)]


@pytest.mark.parametrize(
    ("finalizers", "left"),
    [
        pytest.param((ORPHAN,), [], id="the only one"),
        pytest.param(("x", ORPHAN, "y"), ["x", "y"], id="among others"),
        pytest.param(("x",), None, id="not there"),
    ],
)
def test_removing_a_finalizer(finalizers: tuple[str, ...], left: list[str] | None) -> None:
    meta = ObjectMeta(resource_version="7", finalizers=finalizers)
    expected = None if left is None else {"metadata": {"resourceVersion": "7", "finalizers": left}}
    assert plan.without_finalizer(meta, ORPHAN) == expected
