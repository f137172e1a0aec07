"""Patches of client-side kubectl apply."""

import contextlib
from typing import Any

import pytest

from kcm_cli.machinery import codec, patches
from kcm_cli.sandbox.apiserver.apply import strategic
from kcm_cli.sandbox.apiserver.apply.three_way import merge_patch, strategic_patch
from kcm_cli.sandbox.apiserver.schema import Schemas, Target
from kcm_cli.sandbox.apiserver.schema.model import Node

Tree = dict[str, Any]
SCHEMAS = Schemas()


def node(group: str, version: str, kind: str) -> Node:
    found = SCHEMAS.node(Target(group, version, kind))
    assert found is not None
    return found


def pod(**spec: Any) -> Tree:
    return {"spec": spec}


def containers(*names: str, **fields: Any) -> list[Tree]:
    return [{"name": name, **fields} for name in names]


POD = [
    pytest.param(pod(nodeName="a"), pod(nodeName="a"), pod(nodeName="a", x=1), {}, id="nothing to change"),
    pytest.param(pod(hostNetwork=True), pod(), pod(hostNetwork=True), pod(hostNetwork=None), id="a field is removed"),
    pytest.param(pod(), pod(), pod(hostNetwork=True), {}, id="a field that others set stays"),
    pytest.param(pod(nodeName="a"), pod(nodeName="b"), pod(nodeName="c"), pod(nodeName="b"), id="drift is undone"),
    pytest.param(pod(nodeName="a"), pod(), pod(), pod(nodeName=None), id="what is gone already"),
    pytest.param({}, pod(nodeName=None), pod(), pod(nodeName=None), id="null removes what is not there"),
    pytest.param(pod(nodeName="a"), pod(nodeName=None), pod(nodeName="a"), pod(nodeName=None), id="null removes"),
    pytest.param({}, pod(tolerations=[{"key": "a"}]), pod(tolerations=[]), pod(tolerations=[{"key": "a"}]), id="list"),
    pytest.param(
        pod(containers=containers("a", image="i", tty=True)),
        pod(containers=containers("a", image="i")),
        pod(containers=containers("a", image="i", tty=True, terminationMessagePath="/x")),
        {"spec": {"$setElementOrder/containers": [{"name": "a"}], "containers": [{"tty": None, "name": "a"}]}},
        id="a field of an item is removed",
    ),
    pytest.param(
        pod(containers=containers("a", "b", image="i")),
        pod(containers=containers("b", image="i")),
        pod(containers=containers("a", "b", "sidecar", image="i")),
        {
            "spec": {
                "$setElementOrder/containers": [{"name": "b"}],
                "containers": [{"$patch": "delete", "name": "a"}],
            }
        },
        id="an item is removed, and one that others added stays",
    ),
    pytest.param(
        pod(volumes=[{"name": "v", "emptyDir": {}}]),
        pod(volumes=[{"name": "v", "hostPath": {"path": "/x"}}]),
        pod(volumes=[{"name": "v", "emptyDir": {}}]),
        {
            "spec": {
                "$setElementOrder/volumes": [{"name": "v"}],
                "volumes": [
                    {"hostPath": {"path": "/x"}, "emptyDir": None, "$retainKeys": ["hostPath", "name"], "name": "v"}
                ],
            }
        },
        id="a source is replaced",
    ),
    pytest.param(
        {"metadata": {"finalizers": ["a", "b"]}},
        {"metadata": {"finalizers": ["b", "c"]}},
        {"metadata": {"finalizers": ["a", "b", "x"]}},
        {
            "metadata": {
                "finalizers": ["c"],
                "$deleteFromPrimitiveList/finalizers": ["a"],
                "$setElementOrder/finalizers": ["b", "c"],
            }
        },
        id="scalars",
    ),
]


@pytest.mark.parametrize(("original", "modified", "current", "patch"), POD)
def test_patches_of_pods(original: Tree, modified: Tree, current: Tree, patch: Tree) -> None:
    before = codec.encode([original, modified, current])
    assert strategic_patch(node("", "v1", "Pod"), original, modified, current) == patch
    assert codec.encode([original, modified, current]) == before


def test_defaults_of_another_union_member_are_removed() -> None:
    kind = node("apps", "v1", "Deployment")
    current = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    wanted = {"spec": {"strategy": {"type": "Recreate"}}}
    patch = strategic_patch(kind, {}, wanted, current)
    assert patch == {"spec": {"strategy": {"type": "Recreate", "$retainKeys": ["type"]}}}
    assert strategic.merge(kind, codec.decode_doc(codec.encode(current)), patch) == wanted


def test_an_empty_union_keeps_its_member() -> None:
    kind = node("apps", "v1", "Deployment")
    current = {"spec": {"strategy": {"type": "Recreate"}}}
    assert strategic_patch(kind, {}, {"spec": {"strategy": {}}}, current) == {}


@pytest.mark.parametrize("changed", [0, 1])
def test_items_with_the_same_key_are_paired(changed: int) -> None:
    live: list[Tree] = [{"port": 53, "protocol": name, "targetPort": 53} for name in ("TCP", "UDP")]
    wanted = [{**one, "targetPort": 5353} if number == changed else one for number, one in enumerate(live)]
    service = node("", "v1", "Service")
    assert strategic_patch(service, {}, {"spec": {"ports": live}}, {"spec": {"ports": live}}) == {}
    patch = strategic_patch(service, {}, {"spec": {"ports": wanted}}, {"spec": {"ports": live}})
    assert patch["spec"]["ports"] == [{"targetPort": 5353, "port": 53}]  # type: ignore[index]


def test_custom_kinds_have_merge_patches() -> None:
    original = {"spec": {"a": 1, "b": {"c": 1, "d": 1}, "list": [{"name": "x"}]}}
    modified = {"spec": {"b": {"c": 2}, "list": [{"name": "y"}]}}
    current = {"spec": {"a": 1, "b": {"c": 1, "d": 1, "e": 1}, "list": [{"name": "x"}], "other": 1}}
    patch = merge_patch(original, modified, current)
    assert patch == {"spec": {"b": {"c": 2, "d": None}, "list": [{"name": "y"}], "a": None}}
    merged = patches.merge_patch(current, patch)
    assert merged == {"spec": {"b": {"c": 2, "e": 1}, "list": [{"name": "y"}], "other": 1}}


PORT = {"TCP": {"port": 53, "protocol": "TCP"}, "UDP": {"port": 53, "protocol": "UDP"}}


@pytest.mark.parametrize(
    ("before", "after", "gone"), [("TCP UDP", "TCP", 1), ("TCP UDP", "UDP", 1), ("TCP TCP UDP", "", 1)]
)
def test_the_removal_of_one_of_several_items_with_a_key_removes_all(before: str, after: str, gone: int) -> None:
    """As kubectl's patch does it: kubernetes#105610, kubectl#1766."""
    service = node("", "v1", "Service")
    had, wanted = ({"spec": {"ports": [PORT[name] for name in text.split()]}} for text in (before, after))
    patch: Any = strategic_patch(service, had, wanted, had)
    assert patch["spec"]["ports"] == [{"$patch": "delete", "port": 53}] * gone
    assert strategic.merge(service, codec.decode_doc(codec.encode(had)), patch)["spec"]["ports"] == []


def test_an_item_that_also_loses_a_field_is_added_again() -> None:
    """As of kubectl: its change is merged into the removal of the field, and not into that of the item."""
    pods = node("", "v1", "Pod")
    had = pod(containers=containers("c", env=[{"name": "A"}, {"name": "A", "value": "x"}]))
    wanted = pod(containers=containers("c", env=[{"name": "A"}]))
    patch: Any = strategic_patch(pods, had, wanted, had)
    assert patch["spec"]["containers"][0]["env"] == [{"name": "A", "value": None}, {"name": "A", "$patch": "delete"}]
    merged: Any = strategic.merge(pods, codec.decode_doc(codec.encode(had)), patch)
    assert merged["spec"]["containers"][0]["env"] == [{"name": "A", "value": None}]


def test_changes_of_items_with_a_key_are_one_beside_a_removal() -> None:
    """The order of several is refused by the server; kubectl merges them into the removal."""
    service = node("", "v1", "Service")
    had = {"spec": {"ports": [{"port": 1}, *names_of_ports("a", "b")["spec"]["ports"]]}}
    patch: Any = strategic_patch(service, had, names_of_ports("c", "d"), had)
    assert patch["spec"]["ports"] == [{"name": "c", "port": 53}, {"$patch": "delete", "port": 1}]


def test_an_item_that_is_there_more_often_than_the_manifests_say_stays() -> None:
    service = node("", "v1", "Service")
    live, wanted = ({"spec": {"ports": [PORT[name] for name in text.split()]}} for text in ("TCP UDP", "TCP"))
    patch = strategic_patch(service, wanted, wanted, live)
    assert strategic.merge(service, codec.decode_doc(codec.encode(live)), patch) == live


def names_of_ports(*names: str) -> Tree:
    return {"spec": {"ports": [{"name": name, "port": 53} for name in names]}}


PAIRED = [  # the patches are kubectl's, v1.36
    pytest.param("a", "a b", [{"name": "b", "port": 53}, {"name": "a", "port": 53}], "a", id="added"),
    pytest.param("a b", "b a", [{"name": "a", "port": 53}, {"name": "b", "port": 53}], "b b", id="in another order"),
    pytest.param("a b", "c d", [{"name": "d", "port": 53}, {"name": "c", "port": 53}], "c b", id="both changed"),
    pytest.param("a b", "a d", [{"name": "d", "port": 53}], "d b", id="the second changed"),
]


@pytest.mark.parametrize(("before", "after", "items", "merged"), PAIRED)
def test_items_with_the_same_key_are_paired_from_the_end(
    before: str, after: str, items: list[Tree], merged: str
) -> None:
    """The server knows the first one only, and the last change of it counts."""
    service, had, wanted = node("", "v1", "Service"), names_of_ports(*before.split()), names_of_ports(*after.split())
    patch: Any = strategic_patch(service, had, wanted, had)
    assert patch["spec"]["ports"] == items
    assert strategic.merge(service, codec.decode_doc(codec.encode(had)), patch) == names_of_ports(*merged.split())


UNMERGED = [
    pytest.param([{}], [{"name": "a"}], "map: map[] does not contain declared merge key: name", id="live"),
    pytest.param([{"name": "a"}], [{"x": 1}], "map: map[x:1] does not contain declared merge key: name", id="new"),
    pytest.param([{"name": "a"}], ["a"], "list element types are not identical", id="another type"),
    pytest.param([{"name": "a"}], [None], "list element types are not identical", id="null"),
]


@pytest.mark.parametrize("place", ["imagePullSecrets", "containers"])
@pytest.mark.parametrize(("there", "wanted", "text"), UNMERGED)
def test_lists_that_cannot_be_merged(there: list[Tree], wanted: list[Any], text: str, place: str) -> None:
    """In the live object as in the previous manifest."""
    had, new = pod(**{place: there}), pod(**{place: wanted})
    for original, current in ((had, pod(**{place: []})), ({}, had)):
        with pytest.raises(strategic.StrategicError) as raised:
            strategic_patch(node("", "v1", "Pod"), original, new, current)
        assert text in str(raised.value)
    assert strategic_patch(node("", "v1", "Pod"), {}, new, pod(**{place: []})) == new


NULLS = [
    pytest.param({}, {"a": None}, {"a": 1}, {"a": None}, id="a new null removes"),
    pytest.param({"a": 1}, {"a": None}, {"a": 1}, {"a": None}, id="a null in place of a value removes"),
    pytest.param({"a": None}, {"a": None}, {"a": 1}, {}, id="a null that was there before says nothing"),
    pytest.param({"b": {"a": None}}, {"b": {"a": None}}, {"b": {"a": 1}}, {}, id="nor does one within"),
    pytest.param({"b": {"a": None}}, {"b": {"a": None}}, {}, {}, id="nor within what is not there"),
    pytest.param({}, {"b": {}}, {}, {"b": {}}, id="an empty object is a value"),
    pytest.param({}, {"b": {}}, {"b": {"x": 1}}, {}, id="an empty object changes none"),
    pytest.param({"b": {"x": 1}}, {"b": {}}, {"b": {"x": 1}}, {"b": {"x": None}}, id="what is gone within"),
    pytest.param({}, {"b": {"x": 1}}, {"b": [1]}, {"b": {"x": 1}}, id="another type"),
    pytest.param({}, {"b": [None]}, {"b": [None]}, {}, id="nulls in lists are values"),
]


@pytest.mark.parametrize(("original", "modified", "current", "patch"), NULLS)
def test_nulls_in_custom_objects(original: Tree, modified: Tree, current: Tree, patch: Tree) -> None:
    assert merge_patch(original, modified, current) == patch


@pytest.mark.parametrize("odd", [None, 3, "text", [], {}, [1], [None], [{"x": 1}], {"a": None}])
def test_odd_manifests_raise_nothing_else(odd: object) -> None:
    for kind in (node("", "v1", "Pod"), node("apps", "v1", "Deployment")):
        for place in ("metadata", "spec"):
            whole: Tree = {"metadata": {"finalizers": ["a"]}, "spec": {"containers": containers("a")}}
            for docs in (({place: odd}, whole, whole), (whole, {place: odd}, whole), (whole, whole, {place: odd})):
                with contextlib.suppress(strategic.StrategicError):
                    strategic_patch(kind, *docs)
                merge_patch(*docs)
            inner: Tree = {"spec": {"containers": odd, "volumes": odd, "nodeSelector": odd}}
            for docs in ((inner, whole, inner), (whole, inner, whole)):
                with contextlib.suppress(strategic.StrategicError):
                    strategic_patch(kind, *docs)
