"""Secrets: defaults, and refused values with their causes, as a v1.36 server answers."""

from typing import Any

from tests.kit.api import Api
from tests.kit.kinds import Kind, Row

SECRETS = Kind("/api/v1/namespaces/default/secrets", {"data": {"a": "MQ=="}})
DEFAULTS: dict[str, Any] = {
    "type": "Opaque",
}
REFUSED: list[Row] = [
    ("data", {"a b": "MQ=="}, '[a b]: Invalid value: "a b": a valid config key must consist of alphanumeric …'),
    ("type", "kubernetes.io/dockercfg", "data[.dockercfg]: Required value"),
    ("type", "kubernetes.io/dockerconfigjson", "data[.dockerconfigjson]: Required value"),
    ("type", "kubernetes.io/basic-auth", ["data[username]: Required value", "data[password]: Required value"]),
    ("type", "kubernetes.io/ssh-auth", "data[ssh-privatekey]: Required value"),
    ("type", "kubernetes.io/tls", ["data[tls.crt]: Required value", "data[tls.key]: Required value"]),
    ("type", "kubernetes.io/service-account-token", "metadata.annotations[kubernetes.io/service-account.name]: …"),
]
KEPT: list[Row] = [
    ("type", "x", 'Invalid value: "x": field is immutable'),
]


async def test_table(api: Api) -> None:
    await SECRETS.check(api, DEFAULTS, REFUSED, KEPT)
