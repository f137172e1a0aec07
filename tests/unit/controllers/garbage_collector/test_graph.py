"""The effects of events on the graph, and the queued objects."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.api.well_known import FOREGROUND
from kcm_cli.controllers.garbage_collector.dump import dot
from kcm_cli.controllers.garbage_collector.graph import FEW, ORPHAN, Effects, Graph, Identity, partition
from kcm_cli.machinery.meta import ObjectMeta, OwnerReference
from kcm_cli.machinery.recent import Recent
from tests.kit.growth import grows_linearly

DELETED = "2026-01-01T00:00:00Z"


def identity(uid: str, namespace: str = "ns", kind: str = "ConfigMap", name: str = "") -> Identity:
    return Identity(kind, "v1", namespace, name or uid, uid)


def ref(uid: str, kind: str = "ConfigMap", name: str = "", block: bool | None = None) -> OwnerReference:
    return OwnerReference("v1", kind, name or uid, uid, block_owner_deletion=block)


def meta(*owners: OwnerReference, finalizers: tuple[str, ...] = (), deleting: bool = False) -> ObjectMeta:
    return ObjectMeta(owner_references=owners, finalizers=finalizers, deletion_timestamp=DELETED if deleting else None)


class Scene:
    """A graph, and what came of each event as sets: delete, delete_later, orphan, wrong_namespace."""

    def __init__(self) -> None:
        self.absent = Recent()
        self.graph = Graph(self.absent)
        self._last: dict[str, ObjectMeta] = {}

    def add(self, uid: str, *owners: OwnerReference, namespace: str = "ns", **kind: Any) -> dict[str, set[str]]:
        where = {name: kind.pop(name) for name in ("kind", "name") if name in kind}
        return self.see(identity(uid, namespace, **where), meta(*owners, **kind))

    def see(self, who: Identity, now: ObjectMeta) -> dict[str, set[str]]:
        found = self.graph.observe(who, now, self._last.get(who.uid))
        self._last[who.uid] = now
        return summary(found)

    def remove(self, who: Identity) -> dict[str, set[str]]:
        return summary(self.graph.remove(who))

    def missing(self, who: Identity) -> dict[str, set[str]]:
        return summary(self.graph.absent(who))

    def uids(self) -> set[str]:
        return {node.identity.uid for node in self.graph.nodes()}


def summary(effects: Effects | None) -> dict[str, set[str]]:
    if effects is None:
        return {}
    found = {
        "delete": set(effects.delete),
        "later": {node.identity.uid for node in effects.delete_later},
        "orphan": set(effects.orphan),
        "wrong": {node.identity.uid for node, _ in effects.wrong_namespace},
    }
    return {name: uids for name, uids in found.items() if uids}


@pytest.fixture
def scene() -> Scene:
    return Scene()


# -- an object is seen for the first time


def test_an_unknown_owner_becomes_a_virtual_node_that_is_verified(scene: Scene) -> None:
    assert scene.add("child", ref("owner")) == {"delete": {"owner"}}
    owner = scene.graph.get("owner")
    assert owner is not None and owner.virtual
    assert owner.identity == identity("owner")
    assert list(owner.dependents) == ["child"]


def test_two_children_cause_one_verification(scene: Scene) -> None:
    scene.add("one", ref("owner"))
    assert scene.add("two", ref("owner")) == {}
    owner = scene.graph.get("owner")
    assert owner is not None and set(owner.dependents) == {"one", "two"}


def test_an_observed_owner_is_not_verified(scene: Scene) -> None:
    scene.add("owner")
    assert scene.add("child", ref("owner")) == {}


OWNER = {
    "namespaced": identity("owner"),
    "elsewhere": identity("owner", "other"),
    "cluster": identity("owner", ""),
    "renamed": identity("owner", name="before"),
    "of another kind": identity("owner", kind="Secret"),
}


@pytest.mark.parametrize(
    ("owner", "namespace", "expected"),
    [
        pytest.param("namespaced", "ns", {}, id="right"),
        pytest.param("elsewhere", "ns", {"delete": {"child"}, "wrong": {"child"}}, id="another namespace"),
        pytest.param("namespaced", "", {"delete": {"child"}, "wrong": {"child"}}, id="cluster-scoped child"),
        pytest.param("cluster", "ns", {}, id="cluster-scoped owner"),
        pytest.param("cluster", "", {}, id="both cluster-scoped"),
        pytest.param("renamed", "ns", {"delete": {"child"}}, id="another name"),
        pytest.param("of another kind", "ns", {"delete": {"child"}}, id="another kind"),
    ],
)
@pytest.mark.parametrize("owner_first", [True, False], ids=["owner first", "child first"])
def test_references_to_other_coordinates(
    scene: Scene, owner: str, namespace: str, expected: dict[str, set[str]], owner_first: bool
) -> None:
    """However the two are seen: a child that means something else than what is there is looked at again."""
    child = identity("child", namespace)
    if owner_first:
        scene.see(OWNER[owner], meta())
        assert scene.see(child, meta(ref("owner"))) == expected
    else:
        scene.see(child, meta(ref("owner")))
        assert scene.see(OWNER[owner], meta()) == expected
    node = scene.graph.get("owner")
    assert node is not None and not node.virtual and node.identity == OWNER[owner]


def test_an_invalid_owner_is_reported_once_per_object(scene: Scene) -> None:
    scene.add("a", namespace="other")
    scene.add("b", namespace="other")
    found = scene.graph.observe(identity("child"), meta(ref("a"), ref("b")), None)
    assert found is not None
    assert [r.uid for _, r in found.wrong_namespace] == ["a"]
    assert found.delete == ["child"]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param("ns", "other", {"delete": {"two"}}, id="two namespaces"),
        pytest.param("ns", "", {"delete": {"two"}}, id="second is cluster-scoped"),
        pytest.param("", "ns", {"delete": {"two"}}, id="first is cluster-scoped"),
        pytest.param("", "", {}, id="both cluster-scoped"),
        pytest.param("ns", "ns", {}, id="same namespace"),
    ],
)
def test_children_that_disagree_on_an_unseen_owner(
    scene: Scene, first: str, second: str, expected: dict[str, set[str]]
) -> None:
    """Nothing is reported before the owner has been seen: either may be right."""
    scene.add("one", ref("owner"), namespace=first)
    assert scene.add("two", ref("owner"), namespace=second) == expected


@pytest.mark.parametrize(
    ("finalizers", "expected"),
    [
        pytest.param((), {}, id="background"),
        pytest.param((FOREGROUND,), {"delete": {"owner", "child"}}, id="foreground"),
        pytest.param((ORPHAN,), {"orphan": {"owner"}}, id="orphan"),
        pytest.param((ORPHAN, FOREGROUND), {"orphan": {"owner"}}, id="orphan takes precedence"),
        pytest.param(("example.com/other",), {}, id="another finalizer"),
    ],
)
@pytest.mark.parametrize("known", [True, False], ids=["known", "new"])
def test_the_start_of_a_deletion(
    scene: Scene, finalizers: tuple[str, ...], expected: dict[str, set[str]], known: bool
) -> None:
    if known:
        assert scene.add("owner", finalizers=finalizers) == {}  # it is not deleted yet
    scene.add("child", ref("owner"))
    assert scene.add("owner", finalizers=finalizers, deleting=True) == expected
    node = scene.graph.get("owner")
    assert node is not None and node.being_deleted
    assert node.deleting_dependents == (finalizers == (FOREGROUND,))


@pytest.mark.parametrize("finalizer", [FOREGROUND, ORPHAN])
def test_a_finalizer_added_without_a_deletion_is_not_a_start(scene: Scene, finalizer: str) -> None:
    scene.add("owner")
    scene.add("child", ref("owner"))
    assert scene.add("owner", finalizers=(finalizer,)) == {}
    node = scene.graph.get("owner")
    assert node is not None and not node.deleting_dependents


def test_a_continued_deletion_is_not_a_start(scene: Scene) -> None:
    scene.add("owner", finalizers=(FOREGROUND,), deleting=True)
    assert scene.add("owner", finalizers=(FOREGROUND, "x"), deleting=True) == {}


def test_a_finalizer_added_during_the_deletion_is_a_start(scene: Scene) -> None:
    scene.add("owner", finalizers=("x",), deleting=True)
    assert scene.add("owner", finalizers=("x", FOREGROUND), deleting=True) == {"delete": {"owner"}}


@pytest.mark.parametrize("finalizer", [FOREGROUND, ORPHAN])
def test_a_finalizer_that_is_seen_after_its_removal_is_a_start(scene: Scene, finalizer: str) -> None:
    """The object was deleted once more, and the version without the finalizer was not seen."""
    started = scene.add("owner", finalizers=("x", finalizer), deleting=True)
    assert scene.add("owner", finalizers=("x", finalizer), deleting=True) == {}
    node = scene.graph.get("owner")
    assert node is not None
    scene.graph.freed(node, finalizer)
    assert scene.add("owner", finalizers=("x", finalizer), deleting=True) == started
    assert scene.add("owner", finalizers=("x", finalizer), deleting=True) == {}
    scene.remove(identity("owner"))
    scene.graph.freed(node, finalizer)
    assert not scene.graph._freed


# -- owners change


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(ref("owner", block=True), None, {"delete": {"owner"}}, id="blocking one removed"),
        pytest.param(ref("owner", block=False), None, {}, id="other one removed"),
        pytest.param(ref("owner"), None, {}, id="removed without a change"),
        pytest.param(ref("owner", block=True), ref("owner", block=False), {"delete": {"owner"}}, id="unblocked"),
        pytest.param(ref("owner", block=True), ref("owner"), {"delete": {"owner"}}, id="block dropped"),
        pytest.param(ref("owner", block=False), ref("owner", block=True), {}, id="blocked"),
        pytest.param(ref("owner", block=True), ref("owner", block=True), {}, id="same"),
        pytest.param(None, ref("owner", block=True), {}, id="added"),
        pytest.param(None, ref("new"), {"delete": {"new"}}, id="unknown one added"),
        pytest.param(ref("owner", block=True), ref("new"), {"delete": {"owner", "new"}}, id="replaced"),
    ],
)
def test_owners_that_change(
    scene: Scene, before: OwnerReference | None, after: OwnerReference | None, expected: dict[str, set[str]]
) -> None:
    scene.add("owner")
    scene.add("child", *([before] if before else []))
    assert scene.add("child", *([after] if after else [])) == expected
    node = scene.graph.get("owner")
    assert node is not None
    assert ("child" in node.dependents) == (after is not None and after.uid == "owner")


def test_an_unblocked_owner_missing_in_the_graph_is_ignored(scene: Scene) -> None:
    scene.add("child", ref("owner", block=True))
    scene.remove(identity("owner"))
    assert scene.add("child") == {}


def test_only_blocking_references_hold_an_owner(scene: Scene) -> None:
    scene.add("owner")
    scene.add("blocks", ref("owner", block=True))
    scene.add("lets", ref("owner", block=False))
    scene.add("says nothing", ref("owner"))
    scene.add("blocks another", ref("owner"), ref("other", block=True))
    node = scene.graph.get("owner")
    assert node is not None
    assert node.to_ask() == ["blocks"]


def test_a_new_blocking_dependent_is_queued_when_another_is_deleted(scene: Scene) -> None:
    scene.add("owner", finalizers=(FOREGROUND,), deleting=True)
    scene.add("first", ref("owner", block=True))
    node = scene.graph.get("owner")
    assert node is not None and node.to_ask() == ["first"]
    assert scene.add("late", ref("owner", block=True)) == {}
    assert scene.add("later", ref("owner", block=False)) == {}
    assert scene.add("later", ref("owner", block=True)) == {}
    assert scene.remove(identity("first")) == {"delete": {"owner"}}
    assert sorted(node.to_ask()) == ["late", "later"]


def test_the_dependents_of_a_waiting_owner_are_queued_in_proportion(scene: Scene) -> None:
    """Each that goes queues the owner; together these ask for no more than twice as many as there are."""
    count, asked = 5000, 0
    scene.add("owner", finalizers=(FOREGROUND,), deleting=True)
    for number in range(count):
        scene.add(f"child{number}", ref("owner", block=True))
    node = scene.graph.get("owner")
    assert node is not None
    for number in range(count):
        asked += len(node.to_ask())
        assert scene.remove(identity(f"child{number}")) == {"delete": {"owner"}}
    assert not node.blocking
    assert count < asked < 2.1 * count + FEW * FEW


def test_all_remaining_blocking_dependents_are_queued(scene: Scene) -> None:
    scene.add("owner", finalizers=(FOREGROUND,), deleting=True)
    for number in range(FEW + 1):
        scene.add(f"child{number}", ref("owner", block=True))
    node = scene.graph.get("owner")
    assert node is not None
    assert len(node.to_ask()) == FEW + 1
    assert node.to_ask() == []
    scene.remove(identity("child0"))
    assert len(node.to_ask()) == len(node.to_ask()) == FEW


def test_all_late_blocking_dependents_are_queued(scene: Scene) -> None:
    """Nothing else queues them: without this they would never be deleted."""
    scene.add("owner", finalizers=(FOREGROUND,), deleting=True)
    scene.add("first", ref("owner", block=True))
    node = scene.graph.get("owner")
    assert node is not None and node.to_ask() == ["first"]
    late = {f"late{number}" for number in range(2 * FEW)}
    for name in late:
        scene.add(name, ref("owner", block=True))
    assert scene.remove(identity("first")) == {"delete": {"owner"}}
    assert set(node.to_ask()) == late
    assert node.to_ask() == []


# -- an object is gone


def test_a_deletion_queues_children_and_waiting_owners(scene: Scene) -> None:
    scene.add("waits", finalizers=(FOREGROUND,), deleting=True)
    scene.add("stays")
    scene.add("middle", ref("waits"), ref("stays"), ref("unseen"))
    scene.add("child", ref("middle"))
    assert scene.remove(identity("middle")) == {"delete": {"waits", "child"}}
    assert identity("middle") in scene.absent
    assert [n.dependents for n in scene.graph.nodes() if n.identity.uid in ("waits", "stays", "unseen")] == [{}] * 3


def test_deletions_without_children_are_not_cached(scene: Scene) -> None:
    scene.add("alone")
    assert scene.remove(identity("alone")) == {}
    assert identity("alone") not in scene.absent
    assert scene.uids() == set()


def test_an_object_that_owned_itself_is_not_blocked(scene: Scene) -> None:
    """Nodes are not looked at by Python's collector: a circle would stay for ever."""
    scene.add("a", ref("a"))
    node = scene.graph.get("a")
    scene.remove(identity("a"))
    assert node is not None and not node.dependents


def test_the_deletion_of_an_unknown_object_changes_nothing(scene: Scene) -> None:
    assert scene.remove(identity("x")) == {}
    assert scene.missing(identity("x")) == {}


def test_the_event_of_a_deletion_has_the_coordinates_of_a_virtual_owner(scene: Scene) -> None:
    """A child names the owner in its namespace; the owner's last event has another one."""
    scene.add("child", ref("owner"))
    assert scene.remove(identity("owner", "other")) == {"delete": {"child"}, "wrong": {"child"}}
    assert identity("owner", "other") in scene.absent
    assert scene.uids() == {"child"}


# -- the server says that something does not exist


def test_an_absent_owner_leaves_the_graph(scene: Scene) -> None:
    scene.add("child", ref("owner"))
    assert scene.missing(identity("owner")) == {"delete": {"child"}}
    assert scene.uids() == {"child"}
    assert identity("owner") in scene.absent


def test_an_absent_object_without_a_delete_event_is_removed(scene: Scene) -> None:
    scene.add("owner")
    scene.add("child", ref("owner"))
    assert scene.missing(identity("owner")) == {"delete": {"child"}}
    assert scene.uids() == {"child"}


def test_an_observed_owner_is_kept_if_other_coordinates_are_absent(scene: Scene) -> None:
    scene.add("good", ref("owner"))
    scene.add("bad", ref("owner"), namespace="other")
    scene.add("owner")
    assert scene.missing(identity("owner", "other")) == {"delete": {"bad"}}
    assert scene.uids() == {"good", "bad", "owner"}
    assert identity("owner", "other") in scene.absent
    assert scene.missing(identity("owner", name="nobody means this")) == {}


def test_a_virtual_owner_tries_the_other_coordinates_that_it_is_known_by(scene: Scene) -> None:
    scene.add("one", ref("owner"), namespace="a")
    scene.add("two", ref("owner"), namespace="b")
    assert scene.missing(identity("owner", "a")) == {"delete": {"one"}, "later": {"owner"}}
    node = scene.graph.get("owner")
    assert node is not None and node.virtual and node.identity == identity("owner", "b")
    assert scene.missing(identity("owner", "a")) == {"delete": {"one"}}
    assert node.identity == identity("owner", "b")


def test_guesses_are_counted(scene: Scene) -> None:
    """So that each of them may come later than the one before."""
    scene.add("a", ref("owner", name="x"))
    scene.add("b", ref("owner", name="y"))
    for number in range(1, 6):
        node = scene.graph.get("owner")
        assert node is not None
        scene.missing(node.identity)
        assert node.guesses == number


def test_unreferenced_coordinates_are_not_cached(scene: Scene) -> None:
    scene.add("one", ref("owner"), namespace="a")
    scene.add("two", ref("owner"), namespace="b")
    assert scene.missing(identity("owner", "c")) == {}
    assert identity("owner", "c") not in scene.absent


@pytest.mark.parametrize(
    ("absent", "children", "expected"),
    [
        pytest.param(
            ("b", "ConfigMap", "o"),
            [("b", "ConfigMap", "o"), ("a", "ConfigMap", "o"), ("c", "ConfigMap", "o")],
            ("c", "ConfigMap", "o"),
            id="the next namespace",
        ),
        pytest.param(
            ("c", "ConfigMap", "o"),
            [("c", "ConfigMap", "o"), ("a", "ConfigMap", "o"), ("b", "ConfigMap", "o")],
            ("a", "ConfigMap", "o"),
            id="the first after the last",
        ),
        pytest.param(
            ("a", "ConfigMap", "o"),
            [("a", "ConfigMap", "o"), ("a", "ConfigMap", "p"), ("a", "Secret", "n")],
            ("a", "ConfigMap", "p"),
            id="the kind counts before the name",
        ),
        pytest.param(
            ("", "Node", "o"),
            [("", "Node", "o"), ("a", "Node", "p")],
            ("", "Node", "p"),
            id="a kind that is known to be cluster-scoped",
        ),
        pytest.param(
            ("", "Node", "o"),
            [("", "Node", "o"), ("a", "Secret", "o")],
            ("a", "Secret", "o"),
            id="another kind in a namespace",
        ),
    ],
)
def test_the_order_of_alternatives(
    scene: Scene, absent: tuple[str, str, str], children: list[tuple[str, str, str]], expected: tuple[str, str, str]
) -> None:
    for number, (namespace, kind, name) in enumerate(children):
        scene.add(f"child{number}", ref("owner", kind, name), ref("unrelated"), namespace=namespace)
    namespace, kind, name = absent
    node = scene.graph.get("owner")
    assert node is not None and node.identity == identity("owner", namespace, kind, name)
    scene.missing(identity("owner", namespace, kind, name))
    namespace, kind, name = expected
    assert node.identity == identity("owner", namespace, kind, name)


def test_a_child_can_reference_both_coordinates(scene: Scene) -> None:
    scene.add("child", ref("owner", name="a"), ref("owner", name="b"))
    node = scene.graph.get("owner")
    assert node is not None
    matching, others = partition(node.dependents.values(), identity("owner", name="a"))
    assert [n.identity.uid for n in matching] == [n.identity.uid for n in others] == ["child"]


def test_a_dependent_with_a_second_owner_still_names_the_first(scene: Scene) -> None:
    scene.add("child", ref("owner"), ref("second"))
    node = scene.graph.get("owner")
    assert node is not None
    matching, others = partition(node.dependents.values(), identity("owner"))
    assert ([n.identity.uid for n in matching], others) == (["child"], [])


# -- properties

UIDS = "abcdef"
events = st.tuples(
    st.sampled_from(["see", "see", "see", "remove", "missing"]),
    st.sampled_from(UIDS),
    st.sampled_from(["", "ns", "other"]),
    st.lists(st.tuples(st.sampled_from(UIDS), st.booleans(), st.booleans()), max_size=3),
    st.sampled_from([(), (FOREGROUND,), (ORPHAN,)]),
    st.booleans(),
)


@given(st.lists(events, max_size=25))
def test_the_graph_equals_the_references(history: list[Any]) -> None:
    """With any events in any order: an owner has exactly its children, and queued nodes were in the graph.

    An owner that has left may stay unknown to its children: a uid does not come back.
    """
    scene = Scene()
    left: set[str] = set()
    for what, uid, namespace, owners, finalizers, deleting in history:
        known = scene.uids() | {uid} | {owner for owner, _, _ in owners}
        refs = tuple(ref(owner, name="x" if odd else "", block=block) for owner, block, odd in owners)
        if what == "see":
            found = scene.see(identity(uid, namespace), meta(*refs, finalizers=finalizers, deleting=deleting))
        elif what == "remove":
            found = scene.remove(identity(uid, namespace))
        else:
            found = scene.missing(identity(uid, namespace))
        left |= {uid} - scene.uids()
        assert set().union(*found.values()) <= known
        for node in scene.graph.nodes():
            assert not (node.virtual and node.owners)
            for owner_ref in node.owners:
                owner = scene.graph.get(owner_ref.uid)
                assert owner is None or owner_ref.uid in left or owner.dependents[node.identity.uid] is node
            for child_uid, child in node.dependents.items():
                assert scene.graph.get(child_uid) is child
                assert any(r.uid == node.identity.uid for r in child.owners)
            assert (node.blocking or set()) == {
                child_uid
                for child_uid, child in node.dependents.items()
                if any(r.uid == node.identity.uid and r.block_owner_deletion for r in child.owners)
            }


# -- the dump


def test_the_dump_names_nodes_and_edges(scene: Scene) -> None:
    scene.add("alone")
    scene.add("child", ref("owner"))
    text = dot(scene.graph).decode()
    assert '"child" -> "owner";' in text
    assert "alone" not in text
    assert 'uid="owner"' in text and 'virtual="true"' in text


def test_the_dump_of_a_uid_has_its_connected_nodes(scene: Scene) -> None:
    scene.add("child", ref("owner"), ref("also"))
    scene.add("stranger", ref("another"))
    scene.see(Identity("Deployment", "apps/v1", "ns", "d", "d"), meta(ref("child")))
    text = dot(scene.graph, "owner,unknown").decode()
    assert {name for name in ("child", "owner", "also", "d", "stranger") if f'"{name}" [' in text} == {
        "child",
        "owner",
        "also",
        "d",
    }
    assert "Deployment.v1.apps/d" in text


@pytest.mark.parametrize("changed", [False, True])
def test_many_owners_take_time_in_proportion(changed: bool) -> None:
    def prepare(size: int) -> Callable[[], object]:
        owners = [ref(f"o{at}") for at in range(size)]

        def add() -> None:
            scene = Scene()
            scene.add("a", *owners)
            if changed:
                scene.add("a", *owners[1:])

        return add

    assert grows_linearly(prepare, 250)
