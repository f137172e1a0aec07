"""Numbers, percentages and counters.

upstream: pkg/apis/apps/validation/validation.go; apimachinery pkg/api/validation/generic.go
"""

from kcm_cli.machinery import names
from kcm_cli.machinery.intstr import IntOrString
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, rules


def count_or_percent(value: IntOrString, path: str) -> Errors:
    """A number of zero or more, or a percentage."""
    return (
        errors.invalid_each(path, value, names.percent(value)) if isinstance(value, str) else rules.COUNT(value, path)
    )


def at_most_100_percent(value: IntOrString, path: str) -> Errors:
    """Check that a percentage is at most 100%."""
    if isinstance(value, str) and not names.percent(value) and int(value[:-1]) > 100:
        yield errors.invalid(path, value, "must not be greater than 100%")


def not_above(limit: str, *counters: str, detail: str = "") -> rules.Rule:
    """Counters of a status that must not be above another one, ``limit``."""

    def check(status: Tree, path: str) -> Errors:
        most = status.get(limit, 0)
        text = detail or f"cannot be greater than {path}.{limit}"
        return [
            errors.invalid(f"{path}.{field}", status.get(field, 0), text)
            for field in counters
            if status.get(field, 0) > most
        ]

    return check
