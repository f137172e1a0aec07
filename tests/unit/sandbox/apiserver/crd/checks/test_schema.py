"""The checks of the schemas in CustomResourceDefinitions."""

import pytest

from kcm_cli.sandbox.apiserver.crd.checks.schema import Strictness, check_validation

MISSING, REPEATED = "entries must all be names of item properties", "must not contain duplicate entries"


def details(keys: list[str]) -> list[str]:
    items = {"type": "object", "properties": {"a": {"type": "string"}}}
    part = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys, "items": items}
    found = check_validation({"type": "object", "properties": {"p": part}}, "schema", Strictness(), status=False)
    return [error.message.rpartition(": ")[2] for error in found if error.field.endswith("list-map-keys")]


def test_each_wrong_key_is_an_error():
    assert details(["a", "b", "c", "a", "b"]) == [MISSING, MISSING, REPEATED, MISSING, REPEATED]


@pytest.mark.parametrize("keys", [["b"] * 10_000, [f"k{number}" for number in range(10_000)], ["b" * 200_000] * 3])
def test_errors_about_keys_do_not_grow_without_end(keys: list[str]) -> None:
    found = details(keys)
    assert 1 <= len(found) <= 1 + 100_000 // len("".join(keys))
