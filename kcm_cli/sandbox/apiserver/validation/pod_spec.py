"""The spec of a pod, by itself and in templates.

Source: pkg/apis/core/validation/validation.go#ValidatePodSpec.
"""

from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors


def validate_pod_spec(spec: Tree, path: str) -> list[FieldError]:
    """A spec, defaults filled in."""
    found: list[FieldError] = []
    if not spec.get("containers"):
        found.append(errors.required(f"{path}.containers"))
    return found
