"""The cache and its indexes agree after any sequence of changes."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.api.resource import Undecodable
from kcm_cli.machinery.meta import Object, ObjectMeta, OwnerReference
from kcm_cli.runtime.store import (
    CONTROLLER_UID,
    NAMESPACE,
    Store,
    UnknownDependents,
    by_controller,
    claimable,
    controlled_by,
    orphans_of,
)

CONTROLLERS = Path(__file__).parents[3] / "kcm_cli" / "controllers"


def obj(name: str, namespace: str = "ns", owner: str = "") -> Object:
    refs = (OwnerReference(uid=owner, controller=True),) if owner else ()
    return Object(metadata=ObjectMeta(name=name, namespace=namespace, owner_references=refs))


def test_objects_are_indexed_by_controller_and_orphans_by_namespace() -> None:
    store: Store[Object] = Store()
    store.put(obj("early", owner="u1"))
    store.add_index(CONTROLLER_UID, by_controller)
    store.put(obj("late", owner="u1"))
    store.put(obj("alone"))
    assert [o.name for o in store.by_index(CONTROLLER_UID, "u1")] == ["early", "late"]
    assert [o.name for o in store.by_index(CONTROLLER_UID, orphans_of("ns"))] == ["alone"]


def test_a_changed_owner_moves_the_object() -> None:
    store: Store[Object] = Store()
    store.add_index(CONTROLLER_UID, by_controller)
    store.put(obj("a", owner="u1"))
    old = store.put(obj("a", owner="u2"))
    assert old is not None and old.metadata.owner_references[0].uid == "u1"
    assert store.by_index(CONTROLLER_UID, "u1") == []
    assert len(store.by_index(CONTROLLER_UID, "u2")) == 1


names = st.sampled_from(["a", "b", "c"])
change = st.tuples(st.booleans(), names, st.sampled_from(["n1", "n2"]), st.sampled_from(["", "u1", "u2"]))


@given(st.lists(change, max_size=40))
def test_indexes_equal_a_search_through_all_objects(changes: list[tuple[bool, str, str, str]]) -> None:
    store: Store[Object] = Store()
    store.add_index(CONTROLLER_UID, by_controller)
    for add, name, namespace, owner in changes:
        if add:
            store.put(obj(name, namespace, owner))
        else:
            store.pop(f"{namespace}/{name}")
    everything = store.list()
    for namespace in ("n1", "n2"):
        found = {o.key for o in everything if o.namespace == namespace}
        assert {o.key for o in store.by_index(NAMESPACE, namespace)} == found
        assert {o.key for o in store.list(namespace)} == found
    for value in store.index_values(CONTROLLER_UID):
        assert {o.key for o in store.by_index(CONTROLLER_UID, value)} == {
            o.key for o in everything if value in by_controller(o)
        }


def test_an_owner_with_unknown_dependents_cannot_be_planned_for() -> None:
    """Objects that cannot be decoded would count as missing, and be recreated endlessly."""
    store: Store[Object] = Store()
    store.add_index(CONTROLLER_UID, by_controller)
    store.put(obj("a", owner="u1"))
    unseen = obj("b", owner="u1")
    store.mark_unknown(Undecodable(unseen.metadata, "Expected `object`"))
    owner = Object(metadata=ObjectMeta(name="o", namespace="ns", uid="u1"))
    other = Object(metadata=ObjectMeta(name="p", namespace="ns", uid="u2"))
    with pytest.raises(UnknownDependents, match="ns/b"):
        claimable(store, owner)
    assert claimable(store, other) == []
    store.put(unseen)
    assert len(claimable(store, owner)) == 2


def test_the_uid_of_an_owner_in_another_namespace_makes_no_child() -> None:
    """A reference is the word of a tenant, who may know the uid of another one's object."""
    store: Store[Object] = Store()
    store.add_index(CONTROLLER_UID, by_controller)
    for namespace in ("ns", "tenant"):
        store.put(obj("a", namespace, owner="u1"))
    store.mark_unknown(Undecodable(obj("b", "tenant", owner="u1").metadata, "Expected `object`"))
    owner = Object(metadata=ObjectMeta(name="o", namespace="ns", uid="u1"))
    assert [one.key for one in claimable(store, owner)] == ["ns/a"]
    wide = Object(metadata=ObjectMeta(name="o", uid="u1"))
    assert [one.key for one in controlled_by(store, "", wide.uid)] == ["ns/a", "tenant/a"]
    assert len(store.unknown_of(wide)) == 1


def test_controllers_find_children_by_namespace_and_uid() -> None:
    """Orphans of Jobs are found by the uid of their former owner, and each is looked at by itself; so are the pods of a
    Recreate Deployment, until one runs."""
    found = [
        path.relative_to(CONTROLLERS).as_posix()
        for path in sorted(CONTROLLERS.rglob("*.py"))
        if "by_index(CONTROLLER_UID" in path.read_text()
    ]
    assert found == ["deployment/controller.py", "job/watches.py"]


def test_an_object_that_fails_in_an_index_is_kept() -> None:
    store: Store[Object] = Store()
    store.add_index("number", lambda one: (str(int(one.name)),))
    for name in ("7", "x", "8"):
        store.put(obj(name))
    store.put(obj("x", owner="u1"))
    assert len(store) == 3
    assert sorted(store.index_values("number")) == ["7", "8"]
    store.pop("ns/x")
    assert len(store) == 2
