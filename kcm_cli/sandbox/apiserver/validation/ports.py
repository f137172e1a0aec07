"""Ports: of containers, endpoints and Services.

upstream: pkg/apis/core/validation/validation.go#ValidatePortNumOrName, #validateEndpointPort; pkg/api/service/util.go
"""

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels, rules


def number(value: int, path: str) -> Errors:
    """A number from 1 to 65535."""
    return () if 1 <= value <= 65535 else errors.invalid_each(path, value, names.port_number(value))


def number_or_name(value: int | str, path: str) -> Errors:
    """A number, or the name of a container's port."""
    if isinstance(value, str):
        return errors.invalid_each(path, value, names.port_name(value))
    return number(value, path)


endpoint_protocols = rules.fields(
    rules.present("protocol", rules.enum(*rules.choices("core.v1.EndpointPort", "protocol"))),
    rules.optional("appProtocol", labels.validate_key),
)
"""The protocol and the application protocol of an endpoint's port."""


def needs_health_check(spec: Tree) -> bool:
    """Whether a Service has a health check node port."""
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"
