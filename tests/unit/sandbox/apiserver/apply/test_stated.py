"""managedFields in requests: what is kept of them, as recorded from a kube-apiserver."""

import pytest

from tests.kit.api import CONFIG_MAPS, Api

OWN = [("test", {"f:data": {".": {}, "f:a": {}}})]
MERGE = {"headers": {"content-type": "application/merge-patch+json"}}


@pytest.mark.parametrize(
    ("stated", "owners"),
    [
        ({"f:data": {".": {}, "f:a": {}}}, [("zz", {"f:data": {".": {}, "f:a": {}}})]),
        ({"f:metadata": {"f:labels": {".": {}}}}, [("zz", {"f:metadata": {"f:labels": {}}})]),
        (
            {"f:data": {"v:1": {}, 'k:{"b": 1, "a": 2}': {}, "i:+7": {}}},
            [("zz", {"f:data": {"v:1": {}, 'k:{"a":2,"b":1}': {}, "i:7": {}}})],
        ),
        ({"x:y": {}, "f:data": {}}, [("zz", {"f:data": {}})]),
        (None, []),
        ({".": 5}, []),
        ({}, []),
        (5, OWN),
        ("Gt", OWN),
        ([], OWN),
        ({"f:a": 5}, OWN),
        ({"x": {}}, OWN),
        ({"": {}}, OWN),
        ({"k:{": {}}, OWN),
        ({"k:[]": {}}, OWN),
        ({"v:[": {}}, OWN),
        ({"i:x": {}}, OWN),
        ({'v:"\\ud800"': {}}, [("zz", {'v:"\ufffd"': {}})]),
        ({"v:NaN": {}}, OWN),
        ({"v:1e999": {}}, OWN),
        ({f'k:{{"a":{"9" * 5000}}}': {}}, OWN),
    ],
    ids=lambda value: repr(value)[:60],
)
async def test_invalid_fields_change_no_owner(api: Api, stated: object, owners: list[tuple[str, object]]) -> None:
    await api.config_map("a", data={"a": "b"})
    entry = {"manager": "zz", "operation": "Update", "apiVersion": "v1", "time": "2029-01-01T00:00:00Z"}
    body = {"metadata": {"managedFields": [{**entry, "fieldsType": "FieldsV1", "fieldsV1": stated}]}}
    made = await api.json("PATCH", f"{CONFIG_MAPS}/a", body, **MERGE)
    found = [(one["manager"], one["fieldsV1"]) for one in made["metadata"].get("managedFields", ())]
    assert found == owners
