"""What the kinds of storage share."""

from collections.abc import Mapping

from kcm_cli.sandbox.apiserver.types import Errors
from kcm_cli.sandbox.apiserver.validation import errors, labels, rules

_COUNT_MAX = 512
_TOO_LARGE = rules.max_size(256 * 1024)


def validate_driver(name: str, path: str) -> Errors:
    """Check the name of a provisioner or driver."""
    return labels.validate_key(name.lower(), path)


def validate_parameters(parameters: Mapping[str, str], path: str) -> Errors:
    if len(parameters) > _COUNT_MAX:
        yield errors.too_long(path, _COUNT_MAX)
        return
    if "" in parameters:
        yield errors.invalid(path, "", "field can not be empty.")
    yield from _TOO_LARGE(parameters, path)


NODE_ID_MAX, METADATA_MAX, MESSAGE_MAX = 256, 256 * 1024, 1024
