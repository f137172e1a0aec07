"""The causes of a 422 response.

Values are printed as upstream prints them: strings in quotes, numbers and booleans without, anything else as Go encodes
it to JSON (structs with the fields of upstream's internal types: see ``go_print``).

upstream: apimachinery pkg/util/validation/field/errors.go
"""

from collections.abc import Iterable, Mapping, Sequence

from kcm_cli.machinery import codec
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.types import FieldError

NEGATIVE = "must be greater than or equal to 0"
NOT_POSITIVE = "must be greater than 0"
IMMUTABLE = "field is immutable"

_HTML = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def show(value: object) -> str:
    """A value as errors print it. The order of mappings is kept."""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return codec.encode(value).decode().translate(_HTML)


def sorted_map(value: Mapping[str, object] | None) -> dict[str, object] | None:
    """A Go map as it is printed: keys sorted, ``null`` if there is none."""
    return None if value is None else dict(sorted(value.items()))


def invalid(path: str, value: object, detail: str) -> FieldError:
    """A malformed value."""
    text = f"Invalid value: {show(value)}"
    return FieldError("FieldValueInvalid", path, f"{text}: {detail}" if detail else text)


def fixed(path: str, new: object, old: object, shown: object = ...) -> list[FieldError]:
    """Check that a value does not change. ``shown``: what is printed instead of the new value."""
    if new == old:
        return []
    return [invalid(path, new if shown is ... else shown, IMMUTABLE)]


def one_of(path: str, value: str, choices: Sequence[str]) -> list[FieldError]:
    """Check that a value is one of these; an empty one is missing."""
    if value in choices:
        return []
    return [not_supported(path, value, choices) if value else required(path)]


def invalid_each(path: str, value: object, details: Iterable[str]) -> list[FieldError]:
    """One error per message, all about the same value."""
    return [invalid(path, value, detail) for detail in details]


def type_invalid(path: str, value: object, detail: str) -> FieldError:
    """A value of a wrong type."""
    return FieldError("FieldValueTypeInvalid", path, f"Invalid value: {show(value)}: {detail}")


def required(path: str, detail: str = "") -> FieldError:
    """A value that is missing."""
    return FieldError("FieldValueRequired", path, f"Required value: {detail}" if detail else "Required value")


def forbidden(path: str, detail: str = "") -> FieldError:
    """A value that is not allowed, or that must not change."""
    return FieldError("FieldValueForbidden", path, f"Forbidden: {detail}" if detail else "Forbidden")


def not_supported(path: str, value: object, choices: Sequence[str]) -> FieldError:
    """A value that is not in an enumeration. The order of ``choices`` is kept."""
    text = f"Unsupported value: {show(value)}"
    if choices:
        text += f": supported values: {', '.join(quote(choice) for choice in choices)}"
    return FieldError("FieldValueNotSupported", path, text)


def duplicate(path: str, value: object, detail: str = "") -> FieldError:
    """A value that an earlier item has."""
    text = f"Duplicate value: {show(value)}"
    return FieldError("FieldValueDuplicate", path, f"{text}: {detail}" if detail else text)


def not_found(path: str, value: object, detail: str = "") -> FieldError:
    """A reference to something that does not exist."""
    text = f"Not found: {show(value)}"
    return FieldError("FieldValueNotFound", path, f"{text}: {detail}" if detail else text)


def too_long(path: str, limit: int) -> FieldError:
    """A string with too many bytes."""
    unit = "byte" if limit == 1 else "bytes"
    detail = f"may not be more than {limit} {unit}" if limit >= 0 else "value is too long"
    return FieldError("FieldValueTooLong", path, f"Too long: {detail}")


def too_many(path: str, actual: int, limit: int) -> FieldError:
    """A list with too many items."""
    unit = "item" if limit == 1 else "items"
    detail = f"must have at most {limit} {unit}" if limit >= 0 else "has too many items"
    return FieldError("FieldValueTooMany", path, f"Too many: {actual}: {detail}")


def internal(path: str, text: str) -> FieldError:
    """An internal error."""
    return FieldError("InternalError", path, f"Internal error: {text}")
