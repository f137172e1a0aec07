"""Numbers, percentages and counters.

Source: pkg/apis/apps/validation/validation.go; apimachinery pkg/api/validation/generic.go.
"""

from kcm_cli.machinery import names
from kcm_cli.machinery.intstr import IntOrString
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors


def non_negative(holder: Tree, fields: tuple[str, ...], path: str) -> Errors:
    """None of these fields, where present, is below zero."""
    for field in fields:
        value = holder.get(field)
        if value is not None and value < 0:
            yield errors.invalid(f"{path}.{field}", value, errors.NEGATIVE)


def count_or_percent(value: IntOrString, path: str) -> Errors:
    """A number of zero or more, or a percentage."""
    if isinstance(value, str):
        return errors.invalid_each(path, value, names.percent(value))
    return [errors.invalid(path, value, errors.NEGATIVE)] if value < 0 else []


def at_most_100_percent(value: IntOrString, path: str) -> Errors:
    """Not more than all."""
    if isinstance(value, str) and not names.percent(value) and int(value[:-1]) > 100:
        return [errors.invalid(path, value, "must not be greater than 100%")]
    return []


def not_above(holder: Tree, fields: tuple[str, ...], limit: str, path: str) -> Errors:
    """Counters of a status that another counter bounds; ``limit`` is that one's name."""
    most = holder.get(limit, 0)
    detail = f"cannot be greater than {path}.{limit}"
    yield from (
        errors.invalid(f"{path}.{field}", holder.get(field, 0), detail)
        for field in fields
        if holder.get(field, 0) > most
    )
