"""ServiceAccounts: defaults, and refused values with their causes, as a v1.36 server answers."""

from typing import Any

from tests.kit.api import Api
from tests.kit.kinds import Kind, Row

SERVICE_ACCOUNTS = Kind("/api/v1/namespaces/default/serviceaccounts", {})
DEFAULTS: dict[str, Any] = {
    "metadata.namespace": "default",
}
REFUSED: list[Row] = [
    ("metadata.name", "A", 'Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case …'),
    ("metadata.name", "a_b", 'Invalid value: "a_b": a lowercase RFC 1123 subdomain must consist of lower case …'),
    ("metadata.labels", {"a": "b c"}, 'Invalid value: "b c": a valid label must be an empty string or consist …'),
]


async def test_table(api: Api) -> None:
    await SERVICE_ACCOUNTS.check(api, DEFAULTS, REFUSED, [])
