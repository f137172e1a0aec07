"""What the kinds of storage share."""

from collections.abc import Mapping

from kcm_cli.sandbox.apiserver.types import Errors
from kcm_cli.sandbox.apiserver.validation import errors, labels

_COUNT_MAX, _SIZE_MAX = 512, 256 * 1024


def validate_driver(name: str, path: str) -> Errors:
    if not name:
        return [errors.required(path)]
    return labels.validate_key(name.lower(), path)


def validate_parameters(parameters: Mapping[str, str], path: str) -> Errors:
    if len(parameters) > _COUNT_MAX:
        yield errors.too_long(path, _COUNT_MAX)
        return
    if "" in parameters:
        yield errors.invalid(path, "", "field can not be empty.")
    size = sum(len(key.encode()) + len(value.encode()) for key, value in parameters.items())
    if size > _SIZE_MAX:
        yield errors.too_long(path, _SIZE_MAX)


NODE_ID_MAX, METADATA_MAX, MESSAGE_MAX = 256, 256 * 1024, 1024
