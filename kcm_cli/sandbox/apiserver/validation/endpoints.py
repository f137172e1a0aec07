"""EndpointSlices and Endpoints.

Source: pkg/apis/discovery/validation/validation.go, pkg/apis/core/validation/validation.go#ValidateEndpoints.
"""

from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels, ports


def validate_protocol(port: Tree, path: str) -> list[FieldError]:
    protocol, application = port.get("protocol"), port.get("appProtocol")
    found: list[FieldError] = []
    if protocol is None:
        found.append(errors.required(f"{path}.protocol"))
    elif protocol not in ports.PROTOCOLS:
        found.append(errors.not_supported(f"{path}.protocol", protocol, ports.PROTOCOLS))
    if application is not None:
        found += labels.validate_key(application, f"{path}.appProtocol")
    return found
