"""Secrets: defaults, and refused values with their causes, as a v1.36 server answers."""

from typing import Any

from tests.kit.api import Api
from tests.kit.kinds import Causes, Kind, rows

SECRETS = Kind("/api/v1/namespaces/default/secrets", {"data": {"a": "MQ=="}})
DEFAULTS: dict[str, Any] = {
    "type": "Opaque",
}
REFUSED = [
    ("data", {"a b": "MQ=="}, 'data[a b]: Invalid value: "a b": a valid config key must consist of alphanumeric c…'),
    ("type", "kubernetes.io/dockercfg", "data[.dockercfg]: Required value"),
    ("type", "kubernetes.io/dockerconfigjson", "data[.dockerconfigjson]: Required value"),
    ("type", "kubernetes.io/basic-auth", ["data[username]: Required value", "data[password]: Required value"]),
    ("type", "kubernetes.io/ssh-auth", "data[ssh-privatekey]: Required value"),
    ("type", "kubernetes.io/tls", ["data[tls.crt]: Required value", "data[tls.key]: Required value"]),
    ("type", "kubernetes.io/service-account-token", "metadata.annotations[kubernetes.io/service-account.name]: Requi…"),
]
UNCHANGEABLE = [
    ("type", "x", 'Invalid value: "x": field is immutable'),
]


async def test_defaults(api: Api) -> None:
    assert await SECRETS.created(api, *DEFAULTS) == DEFAULTS


@rows(REFUSED)
async def test_refused_values(api: Api, field: str, value: Any, causes: Causes) -> None:
    assert await SECRETS.refusal(api, field, value, causes) == causes


@rows(UNCHANGEABLE)
async def test_refused_changes(api: Api, field: str, value: Any, causes: Causes) -> None:
    assert await SECRETS.refused_change(api, field, value, causes) == causes
