"""ValidatingAdmissionPolicyBinding.

Source: pkg/apis/admissionregistration/v1/defaults.go, pkg/apis/admissionregistration/validation,
pkg/registry/admissionregistration/validatingadmissionpolicybinding/strategy.go,
pkg/printers/internalversion/printers.go.
"""

from kcm_cli.sandbox.apiserver.kinds.admissionregistration import common
from kcm_cli.sandbox.apiserver.kinds.admissionregistration.admission_policies import validate_binding
from kcm_cli.sandbox.apiserver.kinds.admissionregistration.common import POLICY_BINDING
from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.strategy import parts
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors

_ACTIONS = ("Audit", "Deny", "Warn")
_DENY_AND_WARN = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the API response "
    "and headers serves no purpose)"
)


def validate_validating_binding(doc: Tree) -> list[FieldError]:
    spec = doc.get("spec") or {}
    return validate_binding(doc, spec) + _actions(spec.get("validationActions") or [], "spec.validationActions")


def validate_validating_binding_update(new: Tree, old: Tree) -> list[FieldError]:
    return validate_validating_binding(new)


def _actions(actions: list[str], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for index, action in enumerate(actions):
        if action not in _ACTIONS:
            found.append(errors.not_supported(f"{path}[{index}]", action, _ACTIONS))
        if action in actions[:index]:
            found.append(errors.duplicate(f"{path}[{index}]", action))
    if "Deny" in actions and "Warn" in actions:
        found.append(errors.invalid(path, actions, _DENY_AND_WARN))
    if not actions:
        found.append(errors.required(path, "at least one validation action is required"))
    return found


KIND = Kind(
    "admissionregistration.k8s.io",
    "validatingadmissionpolicybindings",
    defaults=common.admission_policy_binding,
    strategy=Strategy(
        namespaced=False,
        on_create=parts.first_generation,
        on_update=parts.bump_if_spec_changed,
        needs_version_on_update=True,
        check_create=validate_validating_binding,
        check_update=validate_validating_binding_update,
        warn=common.of_admission,
    ),
    table=POLICY_BINDING,
)
