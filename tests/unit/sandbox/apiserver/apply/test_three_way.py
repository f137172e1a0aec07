"""Patches of client-side kubectl apply."""

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
    pytest.param(pod(nodeName="a"), pod(), pod(), {}, id="what is gone already"),
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


@pytest.mark.parametrize("changed", [0, 1])
def test_items_with_the_same_key_are_paired_in_order(changed: int) -> None:
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


@pytest.mark.parametrize("odd", [None, 3, "text", [], {}, [1], [None], [{"x": 1}], {"a": None}])
def test_odd_manifests_do_not_raise(odd: object) -> None:
    for kind in (node("", "v1", "Pod"), node("apps", "v1", "Deployment")):
        for place in ("metadata", "spec"):
            whole: Tree = {"metadata": {"finalizers": ["a"]}, "spec": {"containers": containers("a")}}
            for docs in (({place: odd}, whole, whole), (whole, {place: odd}, whole), (whole, whole, {place: odd})):
                strategic_patch(kind, *docs)
                merge_patch(*docs)
            inner: Tree = {"spec": {"containers": odd, "volumes": odd, "nodeSelector": odd}}
            strategic_patch(kind, inner, whole, inner)
            strategic_patch(kind, whole, inner, whole)
