"""The sizes for estimates of the cost of rules."""

import pytest

from kcm_cli.sandbox.apiserver.crd.checks.costs import sizes_of
from kcm_cli.sandbox.apiserver.crd.structural import structural

TEXT = 3 * 1024 * 1024 - 2
STRING = {"type": "string", "maxLength": 5}
TYPED = {"kind": STRING, "apiVersion": STRING}
NAMED = {"type": "object", "properties": {"name": STRING, "generateName": STRING}}


@pytest.mark.parametrize(
    ("properties", "step", "expected"),
    [
        pytest.param({}, ("metadata", "name"), TEXT, id="nothing-declared"),
        pytest.param({"metadata": {"type": "object"}}, ("metadata", "name"), TEXT, id="as-controller-gen-writes"),
        pytest.param({"metadata": {"type": "object"}}, ("metadata", "labels"), None, id="hidden-from-rules"),
        pytest.param({"metadata": NAMED}, ("metadata", "name"), TEXT, id="kind-is-not-declared"),
        pytest.param({**TYPED, "metadata": NAMED}, ("metadata", "name"), 20, id="all-declared"),
        pytest.param({**TYPED, "metadata": {"type": "object"}}, ("kind",), TEXT, id="names-not-declared"),
        pytest.param({"spec": STRING}, ("spec",), 20, id="another-field"),
    ],
)
def test_metadata_at_the_root(properties, step, expected):
    size_of = sizes_of(structural({"type": "object", "properties": properties}), root=True)
    assert size_of(("self", *step)) == expected


def test_an_embedded_object_has_metadata_too():
    inner = {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"metadata": {"type": "object"}}}
    size_of = sizes_of(structural({"type": "object", "properties": {"inner": inner}}), root=True)
    assert size_of(("self", "inner", "metadata", "generateName")) == TEXT
    assert size_of(("self", "inner", "other")) is None


def test_items_of_a_result_have_the_size_of_the_schema_itself():
    assert sizes_of(structural({"type": "string", "maxLength": 20}), root=False)(("@items",)) == 80
