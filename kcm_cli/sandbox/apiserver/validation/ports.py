"""Ports: of containers, endpoints and Services.

Source: pkg/apis/core/validation/validation.go#ValidatePortNumOrName, #validateEndpointPort; pkg/api/service/util.go.
"""

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels

PROTOCOLS = ("SCTP", "TCP", "UDP")


def number(value: int, path: str) -> Errors:
    """A number from 1 to 65535."""
    return [] if 1 <= value <= 65535 else errors.invalid_each(path, value, names.port_number(value))


def number_or_name(value: int | str, path: str) -> Errors:
    """A number, or the name of a container's port."""
    if isinstance(value, str):
        return errors.invalid_each(path, value, names.port_name(value))
    return number(value, path)


def protocol(value: str | None, path: str) -> Errors:
    """One of the three."""
    if value in PROTOCOLS:
        return []
    return [errors.not_supported(path, value, PROTOCOLS)] if value else [errors.required(path)]


def endpoint_protocols(port: Tree, path: str) -> Errors:
    """The protocol of an endpoint's port, and that of its application."""
    transport, application = port.get("protocol"), port.get("appProtocol")
    if transport is None:
        yield errors.required(f"{path}.protocol")
    elif transport not in PROTOCOLS:
        yield errors.not_supported(f"{path}.protocol", transport, PROTOCOLS)
    if application is not None:
        yield from labels.validate_key(application, f"{path}.appProtocol")


def needs_health_check(spec: Tree) -> bool:
    """Whether a load balancer asks nodes for their health on a port of its own."""
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"
