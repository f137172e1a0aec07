"""Namespaces: defaults, and refused values with their causes, as a v1.36 server answers."""

from typing import Any

from tests.kit.api import Api
from tests.kit.kinds import Causes, Kind, rows

NAMESPACES = Kind("/api/v1/namespaces", {})
DEFAULTS: dict[str, Any] = {
    "spec.finalizers": ["kubernetes"],
    "status.phase": "Active",
    "metadata.labels": {"kubernetes.io/metadata.name": "x"},
}
REFUSED = [
    ("metadata.name", "A", 'Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric c…'),
    ("metadata.name", "a.b", 'Invalid value: "a.b": must not contain dots'),
    (
        "metadata.name",
        "-a",
        [
            'Invalid value: "-a": a lowercase RFC 1123 label must consist of lower case alphanumeric character…',
            'metadata.labels: Invalid value: "-a": a valid label must be an empty string or consist of alphanu…',
        ],
    ),
    (
        "spec",
        {"finalizers": ["a b"]},
        [
            "spec.finalizers: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_…",
            'spec.finalizers: Invalid value: "a b": name is neither a standard finalizer name nor is it fully…',
        ],
    ),
    ("spec", {"finalizers": ["plain"]}, 'spec.finalizers: Invalid value: "plain": name is neither a standard finaliz…'),
]


async def test_defaults(api: Api) -> None:
    assert await NAMESPACES.created(api, *DEFAULTS) == DEFAULTS


@rows(REFUSED)
async def test_refused_values(api: Api, field: str, value: Any, causes: Causes) -> None:
    assert await NAMESPACES.refusal(api, field, value, causes) == causes
