"""ConfigMaps: defaults, and refused values with their causes, as a v1.36 server answers."""

from typing import Any

from tests.kit.api import Api
from tests.kit.kinds import Kind, Row

CONFIG_MAPS = Kind("/api/v1/namespaces/default/configmaps", {"data": {"a": "1"}})
DEFAULTS: dict[str, Any] = {
    "data": {"a": "1"},
}
REFUSED: list[Row] = [
    ("data", {"a b": "1"}, '[a b]: Invalid value: "a b": a valid config key must consist of alphanumeric …'),
    ("data", {"..": "1"}, "[..]: Invalid value: \"..\": must not be '..'"),
    ("data", {"": "1"}, "[]: Invalid value: \"\": a valid config key must consist of alphanumeric characters, '-',…"),
    ("binaryData", {"a": "MQ=="}, 'data[a]: Invalid value: "a": duplicate of key present in binaryData'),
    ("metadata.name", "A", 'Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case …'),
    ("metadata.name", "", "Required value: name or generateName is required"),
    ("metadata.annotations", {"a/b/c": "1"}, 'Invalid value: "a/b/c": a valid label key must consist of …'),
    (
        "metadata.finalizers",
        ["a b"],
        [
            "Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must …",
            '[0]: Invalid value: "a b": name is neither a standard finalizer name nor is it fully qualified',
        ],
    ),
    (
        "metadata.ownerReferences",
        [{"apiVersion": "v1", "kind": "Pod", "name": "p"}],
        '.uid: Invalid value: "": must not be empty',
    ),
]


async def test_table(api: Api) -> None:
    await CONFIG_MAPS.check(api, DEFAULTS, REFUSED, [])
