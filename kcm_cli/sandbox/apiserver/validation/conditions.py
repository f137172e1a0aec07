"""Conditions of the standard form.

Source: apimachinery pkg/apis/meta/v1/validation/validation.go#ValidateConditions.
"""

import re

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels

_STATUSES = ("False", "True", "Unknown")
_REASON_MAX, _MESSAGE_MAX = 1024, 32 * 1024
_REASON = r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_reason = re.compile(_REASON).fullmatch
_RULE = (
    "a condition reason must start with alphabetic character, optionally followed by a string of "
    "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'"
)
_EXAMPLES = ("my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB")


def validate_conditions(conditions: list[Tree], path: str) -> Errors:
    """One condition per type, each complete."""
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        kind = condition.get("type", "")
        if kind in seen:
            yield errors.duplicate(f"{path}[{index}].type", kind)
        seen.add(kind)
        yield from _condition(condition, kind, f"{path}[{index}]")


def _condition(condition: Tree, kind: str, path: str) -> Errors:
    yield from labels.validate_key(kind, f"{path}.type")
    status, reason = condition.get("status", ""), condition.get("reason", "")
    if status not in _STATUSES:
        yield errors.not_supported(f"{path}.status", status, _STATUSES)
    generation = condition.get("observedGeneration", 0)
    if generation < 0:
        yield errors.invalid(f"{path}.observedGeneration", generation, "must be greater than or equal to zero")
    if not condition.get("lastTransitionTime"):
        yield errors.required(f"{path}.lastTransitionTime")
    if not reason:
        yield errors.required(f"{path}.reason")
    else:
        if not _reason(reason):
            yield errors.invalid(f"{path}.reason", reason, names.regex_message(_RULE, _REASON, *_EXAMPLES))
        if len(reason) > _REASON_MAX:
            yield errors.too_long(f"{path}.reason", _REASON_MAX)
    if len(condition.get("message", "").encode()) > _MESSAGE_MAX:
        yield errors.too_long(f"{path}.message", _MESSAGE_MAX)
