"""ServiceAccounts: defaults, and refused values with their causes, as a v1.36 server answers."""

from typing import Any

from tests.kit.api import Api
from tests.kit.kinds import Causes, Kind, rows

SERVICE_ACCOUNTS = Kind("/api/v1/namespaces/default/serviceaccounts", {})
DEFAULTS: dict[str, Any] = {
    "metadata.namespace": "default",
}
REFUSED = [
    ("metadata.name", "A", 'Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumer…'),
    ("metadata.name", "a_b", 'Invalid value: "a_b": a lowercase RFC 1123 subdomain must consist of lower case alphan…'),
    ("metadata.labels", {"a": "b c"}, 'Invalid value: "b c": a valid label must be an empty string or consist of al…'),
]


async def test_defaults(api: Api) -> None:
    assert await SERVICE_ACCOUNTS.created(api, *DEFAULTS) == DEFAULTS


@rows(REFUSED)
async def test_refused_values(api: Api, field: str, value: Any, causes: Causes) -> None:
    assert await SERVICE_ACCOUNTS.refusal(api, field, value, causes) == causes
