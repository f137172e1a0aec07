"""Ports by number or name.

Source: pkg/apis/core/validation/validation.go#ValidatePortNumOrName.
"""

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.types import FieldError
from kcm_cli.sandbox.apiserver.validation import errors

PROTOCOLS = ("SCTP", "TCP", "UDP")


def number(value: int, path: str) -> list[FieldError]:
    """A number from 1 to 65535."""
    return [] if 1 <= value <= 65535 else errors.invalid_each(path, value, names.port_number(value))


def number_or_name(value: int | str, path: str) -> list[FieldError]:
    """A number, or the name of a container's port."""
    if isinstance(value, str):
        return errors.invalid_each(path, value, names.port_name(value))
    return number(value, path)


def protocol(value: str | None, path: str) -> list[FieldError]:
    """One of the three."""
    if value in PROTOCOLS:
        return []
    return [errors.not_supported(path, value, PROTOCOLS)] if value else [errors.required(path)]
