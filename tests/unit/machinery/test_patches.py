import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.machinery import patches
from kcm_cli.machinery.errors import PatchError
from kcm_cli.machinery.same import same


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": {"b": "c"}}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({}, {"a": [{"b": None, "c": 1}, None]}, {"a": [{"c": 1}, None]}),
        ({"a": 1}, {"missing": None}, {"a": 1}),
    ],
)
def test_merges(document, patch, expected):
    before = json.dumps([document, patch])
    assert patches.merge_patch(document, patch) == expected
    assert json.dumps([document, patch]) == before


@pytest.mark.parametrize(
    ("document", "operations", "expected"),
    [
        ({"a": 1}, [{"op": "add", "path": "/b", "value": [2]}], {"a": 1, "b": [2]}),
        ({"a": [1, 3]}, [{"op": "add", "path": "/a/1", "value": 2}], {"a": [1, 2, 3]}),
        ({"a": [1]}, [{"op": "add", "path": "/a/-", "value": 2}], {"a": [1, 2]}),
        ({"a": [1]}, [{"op": "add", "path": "/a/-1", "value": 2}], {"a": [1, 2]}),
        ({"a": [1, 2, 3]}, [{"op": "remove", "path": "/a/-1"}], {"a": [1, 2]}),
        ({"a": 1, "b": 2}, [{"op": "remove", "path": "/a"}], {"b": 2}),
        ({"a": 1}, [{"op": "replace", "path": "/b", "value": 2}], {"a": 1, "b": 2}),
        ({"a": [1, 2]}, [{"op": "replace", "path": "/a/0", "value": 9}], {"a": [9, 2]}),
        ({"a": 1}, [{"op": "replace", "path": "", "value": {"b": 2}}], {"b": 2}),
        ({"a": {"b": 1}}, [{"op": "move", "from": "/a/b", "path": "/c"}], {"a": {}, "c": 1}),
        ({"a": {"b": [1]}}, [{"op": "copy", "from": "/a", "path": "/c"}], {"a": {"b": [1]}, "c": {"b": [1]}}),
        ({"a/b": 1, "m~n": 2}, [{"op": "remove", "path": "/a~1b"}, {"op": "remove", "path": "/m~0n"}], {}),
        ({"a": 1}, [{"op": "test", "path": "/a", "value": 1}], {"a": 1}),
        ({"a": {"b": [1]}}, [{"op": "test", "path": "", "value": {"a": {"b": [1]}}}], {"a": {"b": [1]}}),
        ({}, [{"op": "test", "path": "/a"}], {}),
        ({}, [{"op": "add", "path": "/a"}], {"a": None}),
        ({}, [{"op": "copy", "from": "/a", "path": "/b"}], {"b": None}),
        ({"": 1}, [{"op": "remove", "path": "/"}], {}),
    ],
)
def test_applies(document, operations, expected):
    before = json.dumps([document, operations])
    assert patches.json_patch(document, operations) == expected
    assert json.dumps([document, operations]) == before


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        ({"op": "what", "path": "/a"}, "Unexpected kind: what"),
        ({"path": "/a"}, "Unexpected kind: unknown"),
        ({"op": "add"}, "add operation failed to decode path: missing value"),
        ({"op": "test"}, "test operation failed to decode path: operation missing path field: missing value"),
        (
            {"op": "move", "path": "/a"},
            "move operation failed to decode from: operation, missing from field: missing value",
        ),
        (
            {"op": "add", "path": "/x/y", "value": 1},
            'add operation does not apply: doc is missing path: "/x/y": missing value',
        ),
        (
            {"op": "add", "path": "", "value": 1},
            'add operation does not apply: doc is missing path: "": missing value',
        ),
        (
            {"op": "add", "path": "/l/9", "value": 1},
            "error in add for path: '/l/9': Unable to access invalid index: 9: invalid index referenced",
        ),
        (
            {"op": "add", "path": "/l/x", "value": 1},
            "error in add for path: '/l/x': value was not a proper array index: 'x': "
            'strconv.Atoi: parsing "x": invalid syntax',
        ),
        (
            {"op": "remove", "path": "/x"},
            "error in remove for path: '/x': Unable to remove nonexistent key: x: missing value",
        ),
        (
            {"op": "remove", "path": "/l/2"},
            "error in remove for path: '/l/2': Unable to access invalid index: 2: invalid index referenced",
        ),
        (
            {"op": "remove", "path": "/a/b"},
            'remove operation does not apply: doc is missing path: "/a/b": missing value',
        ),
        (
            {"op": "replace", "path": "/x/y", "value": 1},
            "replace operation does not apply: doc is missing path: /x/y: missing value",
        ),
        (
            {"op": "replace", "path": "/l/2", "value": 1},
            "replace operation does not apply: doc is missing key: /l/2: missing value",
        ),
        (
            {"op": "move", "from": "/x", "path": "/y"},
            "error in move for path: 'x': Unable to remove nonexistent key: x: missing value",
        ),
        (
            {"op": "copy", "from": "/a", "path": "/x/y"},
            "copy operation does not apply: doc is missing destination path: /x/y: missing value",
        ),
        ({"op": "test", "path": "/a", "value": 2}, "testing value /a failed: test failed"),
        ({"op": "test", "path": "/a", "value": True}, "testing value /a failed: test failed"),
        ({"op": "test", "path": "/x", "value": 1}, "testing value /x failed: test failed"),
        (
            {"op": "test", "path": "/x/y", "value": 1},
            "test operation does not apply: is missing path: /x/y: missing value",
        ),
    ],
)
def test_error_messages(operation, message):
    with pytest.raises(PatchError) as caught:
        patches.json_patch({"a": 1, "l": [1, 2]}, [operation])
    assert str(caught.value) == message


_scalars = st.booleans() | st.integers(0, 3) | st.sampled_from(["", "x"])
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
_documents = st.dictionaries(st.sampled_from("abc"), _values)


def test_copies_of_a_patch_are_limited():
    document = {"a": "x" * (patches.MAX_COPIED - 102), "b": "y" * 98}
    small, large = ({"op": "copy", "from": f"/{name}", "path": f"/{name}2"} for name in "ba")
    assert patches.json_patch(document, [small, large])["a2"] == document["a"]
    why = "Unable to complete the copy, the accumulated size increase of copy is 3145828, exceeding the limit 3145728"
    with pytest.raises(PatchError, match=why):
        patches.json_patch(document, [small, small, large])


@given(_documents, _documents)
def test_merging_is_idempotent(document, patch):
    once = patches.merge_patch(document, patch)
    assert same(patches.merge_patch(once, patch), once)
