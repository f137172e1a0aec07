"""Namespaces: defaults, and refused values with their causes, as a v1.36 server answers."""

from typing import Any

from tests.kit.api import Api
from tests.kit.kinds import Kind, Row

NAMESPACES = Kind("/api/v1/namespaces", {})
DEFAULTS: dict[str, Any] = {
    "spec.finalizers": ["kubernetes"],
    "status.phase": "Active",
    "metadata.labels": {"kubernetes.io/metadata.name": "x"},
}
REFUSED: list[Row] = [
    ("metadata.name", "A", 'Invalid value: "A": a lowercase RFC 1123 label must consist of lower case …'),
    ("metadata.name", "a.b", 'Invalid value: "a.b": must not contain dots'),
    (
        "metadata.name",
        "-a",
        [
            'Invalid value: "-a": a lowercase RFC 1123 label must consist of lower case alphanumeric characters …',
            'metadata.labels: Invalid value: "-a": a valid label must be an empty string or consist of …',
        ],
    ),
    (
        "spec",
        {"finalizers": ["a b"]},
        [
            ".finalizers: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '…",
            '.finalizers: Invalid value: "a b": name is neither a standard finalizer name nor is it fully …',
        ],
    ),
    ("spec", {"finalizers": ["plain"]}, '.finalizers: Invalid value: "plain": name is neither a standard …'),
]


async def test_table(api: Api) -> None:
    await NAMESPACES.check(api, DEFAULTS, REFUSED, [])
