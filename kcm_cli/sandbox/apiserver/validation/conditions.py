"""Conditions (metav1.Condition).

upstream: apimachinery pkg/apis/meta/v1/validation/validation.go#ValidateConditions
"""

import re

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.validation import labels, rules

_REASON = r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_reason = re.compile(_REASON).fullmatch
_RULE = (
    "a condition reason must start with alphabetic character, optionally followed by a string of "
    "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'"
)
_EXAMPLES = ("my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB")
STATUSES = ("False", "True", "Unknown")


def _reason_problems(reason: str) -> list[str]:
    return [] if _reason(reason) else [names.regex_message(_RULE, _REASON, *_EXAMPLES)]


validate_conditions = rules.items(
    key="type",
    then=rules.fields(
        rules.always("type", labels.validate_key),
        rules.always("status", rules.enum(*STATUSES)),
        rules.optional("observedGeneration", rules.at_least(0, "must be greater than or equal to zero")),
        rules.required("lastTransitionTime"),
        rules.required("reason", rules.form(_reason_problems), rules.max_bytes(1024)),
        rules.optional("message", rules.max_bytes(32 * 1024)),
    ),
)
"""Conditions with required fields and unique types."""
