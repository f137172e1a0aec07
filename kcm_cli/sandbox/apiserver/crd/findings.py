"""Errors of a value, collected during its validation against a schema.

Errors with equal texts are kept once. ``matches`` counts the checks: of the alternatives of anyOf and oneOf, the errors
of the one with the most checks are reported.

upstream: kube-openapi pkg/validation/validate/result.go, pkg/validation/errors
"""

from kcm_cli.machinery import codec, go_json
from kcm_cli.machinery.go_floats import go_float
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.types import FieldError
from kcm_cli.sandbox.apiserver.validation import errors

_NOBODY = "<nil>"


def number(value: float) -> str:
    """A number in the format of Go."""
    return str(value) if isinstance(value, int) else go_float(value)


def shown(value: object) -> str:
    """A value in the format of errors."""
    if isinstance(value, float):
        return number(value)
    if isinstance(value, dict | list):
        return go_json.encode(value).decode()
    return errors.show(value)


def invalid(path: str, value: object, detail: str) -> FieldError:
    """FieldValueInvalid with a value of any JSON type."""
    return FieldError("FieldValueInvalid", path, f"Invalid value: {shown(value)}: {detail}")


class Findings:
    """Errors by text, in order. Their fields are relative to the value."""

    __slots__ = ("errors", "matches")

    def __init__(self) -> None:
        self.errors: dict[str, FieldError] = {}
        self.matches = 0

    @property
    def valid(self) -> bool:
        return not self.errors

    def merge(self, other: "Findings") -> None:
        for text, error in other.errors.items():
            self.errors.setdefault(text, error)
        self.matches += other.matches

    def below(self, prefix: str) -> list[FieldError]:
        """The errors for a value at a path."""
        return [FieldError(e.type, _joined(prefix, e.field), e.message) for e in self.errors.values()]

    def _add(self, text: str, error: FieldError) -> None:
        self.errors.setdefault(text, error)

    # Types of errors.

    def wrong_type(self, name: str, wanted: str, found: str) -> None:
        text = f"{name} in body must be of type {wanted}: {quote(found)}"
        self._add(text, errors.type_invalid(name, found, text))

    def invalid(self, name: str, value: object, detail: str) -> None:
        """``detail``: follows ``NAME in body``."""
        text = f"{name} in body {detail}"
        self._add(text, invalid(name, value, text))

    def not_positive(self, name: str, factor: float) -> None:
        """A factor that is 0 or negative."""
        text = f"factor MultipleOf declared for {name} must be positive: {number(factor)}"
        self._add(text, invalid(name, factor, text))

    def required(self, name: str) -> None:
        self._add(f"{name} in body is required", errors.required(name))

    def not_supported(self, name: str, value: object, values: list[object]) -> None:
        choices = [one if isinstance(one, str) else codec.encode(one).decode() for one in values]
        message = f"Unsupported value: {shown(value)}: supported values: {', '.join(map(quote, choices))}"
        self._add(f"{name} in body should be one of {choices}", FieldError("FieldValueNotSupported", name, message))

    def too_long(self, name: str, limit: int) -> None:
        self._add(f"{name} in body should be at most {limit} chars long", errors.too_long(name, limit))

    def too_many(self, name: str, actual: int, limit: int, unit: str) -> None:
        self._add(f"{name} in body should have at most {limit} {unit}", errors.too_many(name, actual, limit))

    def composite(self, text: str) -> None:
        """An error of the whole value."""
        self._add(text, errors.invalid("", "", text))


def _joined(prefix: str, name: str) -> str:
    name = name.removeprefix(".")
    if not name or name == ".":
        return prefix or _NOBODY
    return f"{prefix}.{name}" if prefix else name
