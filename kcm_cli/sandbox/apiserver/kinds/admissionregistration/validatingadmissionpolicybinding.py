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
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors

_ACTIONS = ("Audit", "Deny", "Warn")
_DENY_AND_WARN = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the API response "
    "and headers serves no purpose)"
)


def validate_validating_binding(doc: Tree) -> Errors:
    spec = doc.get("spec") or {}
    return [*validate_binding(doc, spec), *_actions(spec.get("validationActions") or [], "spec.validationActions")]


def validate_validating_binding_update(new: Tree, old: Tree) -> Errors:
    return validate_validating_binding(new)


def _actions(actions: list[str], path: str) -> Errors:
    for index, action in enumerate(actions):
        if action not in _ACTIONS:
            yield errors.not_supported(f"{path}[{index}]", action, _ACTIONS)
        if action in actions[:index]:
            yield errors.duplicate(f"{path}[{index}]", action)
    if "Deny" in actions and "Warn" in actions:
        yield errors.invalid(path, actions, _DENY_AND_WARN)
    if not actions:
        yield errors.required(path, "at least one validation action is required")


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
