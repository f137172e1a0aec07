"""Strategic merge patches: directives, order of lists, errors, and properties of merging."""

import copy
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.sandbox.apiserver.apply import strategic
from kcm_cli.sandbox.apiserver.apply.strategic import StrategicError, merge
from kcm_cli.sandbox.apiserver.schema import Schemas, Target

DEPLOYMENT = Schemas().node(Target("apps", "v1", "Deployment"))
CONFIG_MAP = Schemas().node(Target("", "v1", "ConfigMap"))
SERVICE = Schemas().node(Target("", "v1", "Service"))


def deployment():
    return {
        "spec": {
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
            "template": {
                "spec": {
                    "containers": [
                        {
                            "name": "a",
                            "image": "app:1",
                            "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}],
                            "ports": [{"containerPort": 80, "name": "http"}, {"containerPort": 81}],
                        },
                        {"name": "b", "image": "app:1"},
                    ],
                    "volumes": [{"name": "v", "emptyDir": {}}],
                    "tolerations": [{"key": "a"}],
                }
            },
        }
    }


def pod(patch):
    return {"spec": {"template": {"spec": patch}}}


def merged(patch):
    return merge(DEPLOYMENT, deployment(), pod(patch))["spec"]["template"]["spec"]


def names(items):
    return [item["name"] for item in items]


def test_items_merge_by_key_and_new_ones_come_first():
    result = merged({"containers": [{"name": "new"}, {"name": "b", "image": "app:2"}]})["containers"]
    assert names(result) == ["new", "a", "b"]
    assert result[2] == {"name": "b", "image": "app:2"}


def test_merges_nested_lists_by_their_own_keys():
    patch = {"containers": [{"name": "a", "env": [{"name": "Y", "value": "3"}, {"name": "Z"}], "ports": [
        {"containerPort": 81, "name": "alt"}, {"containerPort": 82}]}]}  # fmt: skip
    container = merged(patch)["containers"][0]
    assert container["env"] == [{"name": "X", "value": "1"}, {"name": "Y", "value": "3"}, {"name": "Z"}]
    assert [port["containerPort"] for port in container["ports"]] == [80, 81, 82]
    assert container["ports"][1] == {"containerPort": 81, "name": "alt"}


def test_nulls_remove_fields_and_unknown_nulls_are_dropped():
    container = merged({"containers": [{"name": "a", "env": None, "command": None}]})["containers"][0]
    assert "env" not in container and "command" not in container


def test_lists_without_a_merge_strategy_are_replaced():
    assert merged({"tolerations": [{"key": "b"}]})["tolerations"] == [{"key": "b"}]


def test_a_null_directive_in_a_new_value_is_dropped_like_other_nulls():
    assert merge(DEPLOYMENT, {}, {"strategy": {"$patch": None, "type": "Recreate"}}) == {
        "strategy": {"type": "Recreate"}
    }
    assert merge(DEPLOYMENT, {}, {"strategy": {"rollingUpdate": {"$patch": None}}}) == {
        "strategy": {"rollingUpdate": {}}
    }
    assert merge(DEPLOYMENT, {}, {"strategy": {"rollingUpdate": {"$patch": "delete"}}}) == {"strategy": {}}


def test_delete_directive_removes_an_item_or_nothing():
    assert names(merged({"containers": [{"name": "b", "$patch": "delete"}]})["containers"]) == ["a"]
    assert names(merged({"containers": [{"name": "z", "$patch": "delete"}]})["containers"]) == ["a", "b"]


def test_replace_directive_replaces_a_list_or_a_map():
    assert merged({"containers": [{"$patch": "replace"}, {"name": "only"}]})["containers"] == [{"name": "only"}]
    strategy = merge(DEPLOYMENT, deployment(), {"spec": {"strategy": {"$patch": "replace", "type": "Recreate"}}})
    assert strategy["spec"]["strategy"] == {"type": "Recreate"}


def test_delete_directive_empties_a_map():
    assert merge(DEPLOYMENT, deployment(), {"spec": {"strategy": {"$patch": "delete"}}})["spec"]["strategy"] == {}


def test_retain_keys_drops_the_rest():
    volume = {"name": "v", "hostPath": {"path": "/x"}, "$retainKeys": ["name", "hostPath"]}
    assert merged({"volumes": [volume]})["volumes"] == [{"name": "v", "hostPath": {"path": "/x"}}]


@pytest.mark.parametrize(
    "order, items, result",
    [
        (["b", "a"], [], ["b", "a"]),
        (["a", "new", "b"], ["new"], ["a", "new", "b"]),
        (["b"], [], ["a", "b"]),
        (["new"], ["new"], ["new", "a", "b"]),
    ],
)
def test_element_order_sorts_the_merged_list(order, items, result):
    patch = {"$setElementOrder/containers": [{"name": name} for name in order]}
    if items:
        patch["containers"] = [{"name": name} for name in items]
    assert names(merged(patch)["containers"]) == result


@pytest.mark.parametrize(
    ("live", "order", "given", "deleted", "result"),
    [
        ("ab", "a", "a", "a", "ba"),
        ("ab", "x", "x", "a", "bx"),
        ("ab", "x", "x", "b", "ax"),
        ("ba", "a", "a", "a", "ba"),
        ("abc", "a", "a", "a", "bca"),
        ("abc", "x", "x", "b", "acx"),
        ("abc", "x", "x", "ab", "cx"),
        ("abc", "xy", "xy", "b", "acxy"),
        ("abc", "ca", "a", "ac", "ba"),
        ("ab", "x", "x", "", "xab"),
    ],
)
def test_new_items_take_the_places_of_deleted_ones(live, order, given, deleted, result):
    items = [{"name": name, "image": "new"} for name in given]
    items += [{"name": name, "$patch": "delete"} for name in deleted]
    patch = pod({"$setElementOrder/containers": [{"name": name} for name in order], "containers": items})
    containers = merge(DEPLOYMENT, pod({"containers": [{"name": name} for name in live]}), patch)
    assert "".join(names(containers["spec"]["template"]["spec"]["containers"])) == result


def test_primitive_lists_merge_as_sets_and_lose_items():
    def finalizers(patch):
        doc = {"metadata": {"finalizers": ["x/a", "x/b"]}}
        return merge(CONFIG_MAP, doc, {"metadata": patch})["metadata"]["finalizers"]

    assert finalizers({"finalizers": ["x/c", "x/a"]}) == ["x/c", "x/a", "x/b"]
    assert finalizers({"$deleteFromPrimitiveList/finalizers": ["x/a"]}) == ["x/b"]
    assert finalizers({"$setElementOrder/finalizers": ["x/b", "x/a"]}) == ["x/b", "x/a"]


@pytest.mark.parametrize(
    "patch, code, text",
    [
        ({"containers": [{"image": "i"}]}, 500, "map: map[image:i] does not contain declared merge key: name"),
        (
            {"containers": [{"name": "a", "$patch": "bogus"}]},
            500,
            "unknown patch type: bogus in map: map[$patch:bogus name:a]",
        ),
        (
            {"containers": [{"name": "a", "$patch": "merge"}]},
            500,
            "merging lists cannot yet be specified in the patch",
        ),
        (
            {"$setElementOrder/containers": [{"name": "new"}], "containers": [{"name": "other", "image": "i"}]},
            500,
            "The order in patch list:\n[map[image:i name:other]]\n doesn't match $setElementOrder list:\n"
            "[map[name:new]]\n",
        ),
        (
            {"volumes": [{"name": "v", "hostPath": {}, "$retainKeys": ["name"]}]},
            400,
            "invalid patch format of retainKeys",
        ),
        ({"$setElementOrder/nope": [1]}, 500, 'unable to find api field in struct PodSpec for the json field "nope"'),
        ({"$setElementOrder/containers": "x"}, 500, "expected a []interface {}, but received a string"),
    ],
    ids=["no-key", "bogus", "merge", "order", "retain-keys", "no-field", "no-list"],
)  # fmt: skip
def test_errors_have_upstreams_texts(patch, code, text):
    with pytest.raises(StrategicError) as caught:
        merged(patch)
    assert (caught.value.code, str(caught.value)) == (code, text)


def test_lists_of_mixed_types_are_refused():
    with pytest.raises(StrategicError, match="^list element types are not identical: "):
        merged({"containers": ["a"]})


# --- laws ---------------------------------------------------------------------------------------------------

keys = st.sampled_from("abcd")
values = st.sampled_from(["1", "2", "3"])
env = st.dictionaries(keys, values, max_size=3).map(lambda d: [{"name": k, "value": v} for k, v in d.items()])
container = st.fixed_dictionaries({}, optional={"image": values, "env": env, "args": st.lists(values, max_size=2)})
containers = st.dictionaries(keys, container, max_size=3).map(lambda d: [{"name": k, **c} for k, c in d.items()])
objects = st.fixed_dictionaries(
    {"metadata": st.fixed_dictionaries({}, optional={"labels": st.dictionaries(keys, values, max_size=3)})},
    optional={"spec": st.fixed_dictionaries({"template": st.fixed_dictionaries({"spec": st.fixed_dictionaries(
        {"containers": containers})})}, optional={"replicas": st.integers(0, 3)})},
)  # fmt: skip


def _lists(name, old, new, key):
    """The part of a patch that turns one keyed list into another."""
    before, after = {item[key]: item for item in old}, {item[key]: item for item in new}
    items = [{key: k, "$patch": "delete"} for k in before if k not in after]
    for item in new:
        earlier = before.get(item[key], {})
        change = diff(earlier, item) if earlier else copy.deepcopy(item)
        if change or not earlier:
            items.append({**change, key: item[key]})
    patch = {f"$setElementOrder/{name}": [{key: item[key]} for item in new]}
    return {**patch, name: items} if items else patch


def diff(old, new):
    """A strategic patch from one document to another, as kubectl makes it."""
    patch = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if before == value:
            continue
        if isinstance(value, dict) and isinstance(before, dict):
            patch[key] = diff(before, value)
        elif key in ("containers", "env") and isinstance(before, list):
            patch |= _lists(key, before, value, "name")
        else:
            patch[key] = copy.deepcopy(value)
    return patch


def _without_empty(value):
    """Without empty lists and objects, which a patch may keep or remove."""
    if isinstance(value, dict):
        return {k: v for k, v in ((k, _without_empty(v)) for k, v in value.items()) if v not in ([], {})}
    return [_without_empty(item) for item in value] if isinstance(value, list) else value


@given(objects, objects)
def test_a_patch_made_by_diff_makes_the_target(old, new):
    result = merge(DEPLOYMENT, copy.deepcopy(old), diff(old, new))
    assert _without_empty(result) == _without_empty(new)


@given(objects, objects)
def test_applying_a_patch_again_changes_nothing(old, new):
    patch = diff(old, new)
    once = merge(DEPLOYMENT, copy.deepcopy(old), copy.deepcopy(patch))
    assert merge(DEPLOYMENT, copy.deepcopy(once), copy.deepcopy(patch)) == once


@given(objects)
def test_an_empty_patch_changes_nothing(old):
    assert merge(DEPLOYMENT, copy.deepcopy(old), {}) == old


def _env(numbers, **more):
    return [{"name": f"e{number}", "value": "1", **more} for number in numbers]


def _finalizers(numbers):
    return [f"example.com/f{number}" for number in numbers]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (lambda n: pod({"containers": _env(range(n))}), lambda n: pod({"containers": _env(reversed(range(n)))})),
        (lambda n: pod({"containers": _env(range(n))}), lambda n: pod({"containers": _env(range(n, 2 * n))})),
        (
            lambda n: pod({"containers": _env(range(n))}),
            lambda n: pod({"containers": _env(range(0, 2 * n, 2), **{"$patch": "delete"})}),
        ),
        (
            lambda n: pod({"containers": _env(range(n))}),
            lambda n: pod(
                {
                    "$setElementOrder/containers": [{"name": f"e{each}"} for each in range(n)],
                    "containers": [*_env(range(n)), *_env(range(n), **{"$patch": "delete"})],
                }
            ),
        ),
        (
            lambda n: pod({"containers": _env(range(n))}),
            lambda n: pod({"$setElementOrder/containers": [{"name": f"e{each}"} for each in reversed(range(2 * n))]}),
        ),
        (
            lambda n: {"metadata": {"finalizers": _finalizers(range(n))}},
            lambda n: {"metadata": {"finalizers": _finalizers(range(n // 2, 2 * n))}},
        ),
        (
            lambda n: {"metadata": {"finalizers": _finalizers(range(n))}},
            lambda n: {"metadata": {"$deleteFromPrimitiveList/finalizers": _finalizers(range(0, 2 * n, 2))}},
        ),
    ],
    ids=["reversed", "new", "deleted", "replaced", "ordered", "set", "taken-from-set"],
)
def test_a_list_twice_as_long_takes_twice_the_work(old, new):
    def work(count):
        calls = 0

        def profile(frame, event, argument):
            nonlocal calls
            calls += event == "call"

        left, right = old(count), new(count)
        sys.setprofile(profile)
        try:
            merge(DEPLOYMENT, left, right)
        finally:
            sys.setprofile(None)
        return calls

    assert work(400) < 2.2 * work(200)


def test_new_items_with_an_empty_order():
    live, given = ([{"name": name} for name in text] for text in ("ab", "bxya"))
    patch = pod({"$setElementOrder/containers": [], "containers": given})
    containers = merge(DEPLOYMENT, pod({"containers": live}), patch)["spec"]["template"]["spec"]["containers"]
    assert names(containers) == ["a", "y", "x", "b"]


TEXT = st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "x", "null", "$patch", "{"])
CONDITION = st.fixed_dictionaries(
    {"type": st.sampled_from("ABC")},
    optional={"status": TEXT, "reason": TEXT, "$patch": st.sampled_from(["delete", "replace"]), "unknown": TEXT},
)
POD = Schemas().node(Target("", "v1", "Pod"))


def merged_conditions(live, patch):
    """The result, or the error's text, and the patch as merging leaves it."""
    live, patch = copy.deepcopy(live), copy.deepcopy(patch)
    try:
        result = merge(POD, live, patch)
        return result, copy.deepcopy(patch)  # the result may share parts of it
    except StrategicError as error:
        return str(error), patch


@given(
    st.lists(CONDITION, max_size=4),
    st.lists(CONDITION, max_size=4),
    st.sampled_from([{}, {"$setElementOrder/conditions": [{"type": "B"}, {"type": "A"}]}]),
)
def test_a_merge_that_is_known_gives_the_same_result_which_belongs_to_the_caller(live, conditions, order):
    before = {"status": {"conditions": live}}
    patch = {"status": {"conditions": conditions, **order}}
    strategic._merged.cache_clear()
    first, left = merged_conditions(before, patch)
    expected = copy.deepcopy(first)
    if isinstance(first, dict):
        for condition in first["status"]["conditions"]:
            condition["changed"] = True
    again, left_again = merged_conditions(before, patch)
    assert (again, left_again) == (expected, left)


def test_known_merges_are_limited_in_number_and_size():
    for number in range(2 * strategic._KEPT):
        merged_conditions({"status": {"conditions": []}}, {"status": {"conditions": [{"type": f"{number}"}]}})
    size = strategic._merged.cache_info().currsize
    assert 0 < size <= strategic._KEPT
    long = [{"type": "A", "message": "x" * strategic._LONGEST}]
    result, _ = merged_conditions({"status": {"conditions": []}}, {"status": {"conditions": long}})
    assert result["status"]["conditions"] == long and strategic._merged.cache_info().currsize == size
