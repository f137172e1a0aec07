"""A part of a document with the wrong type is empty."""

import pytest

from kcm_cli.machinery.documents import nested_list, nested_map, nested_str

DOC = {"metadata": {"name": "web", "labels": {"app": "web"}, "finalizers": ["a"]}, "spec": None, "status": [{}]}


@pytest.mark.parametrize(
    ("read", "path", "expected"),
    [
        pytest.param(nested_map, (), DOC, id="the whole"),
        pytest.param(nested_map, ("metadata", "labels"), {"app": "web"}, id="a map"),
        pytest.param(nested_map, ("metadata", "annotations"), {}, id="no map"),
        pytest.param(nested_map, ("spec", "template", "metadata"), {}, id="below null"),
        pytest.param(nested_map, ("status", "conditions"), {}, id="below a list"),
        pytest.param(nested_map, ("metadata", "name"), {}, id="a text in the place of a map"),
        pytest.param(nested_list, ("metadata", "finalizers"), ["a"], id="a list"),
        pytest.param(nested_list, ("metadata", "labels"), [], id="a map in the place of a list"),
        pytest.param(nested_str, ("metadata", "name"), "web", id="a text"),
        pytest.param(nested_str, ("metadata", "labels"), "", id="a map in the place of a text"),
    ],
)
def test_a_part_of_a_document(read: object, path: tuple[str, ...], expected: object) -> None:
    assert read(DOC, *path) == expected  # type: ignore[operator]


@pytest.mark.parametrize("doc", [None, "text", 1, []])
def test_a_document_can_be_any_value(doc: object) -> None:
    assert nested_map(doc) == nested_map(doc, "metadata") == {}
