"""MutatingAdmissionPolicyBinding.

Source: pkg/apis/admissionregistration/v1/defaults.go, pkg/apis/admissionregistration/validation,
pkg/registry/admissionregistration/mutatingadmissionpolicybinding/strategy.go, pkg/printers/internalversion/printers.go.
"""

from kcm_cli.sandbox.apiserver.kinds.admissionregistration import common
from kcm_cli.sandbox.apiserver.kinds.admissionregistration.admission_policies import validate_binding, validate_mutated
from kcm_cli.sandbox.apiserver.kinds.admissionregistration.common import POLICY_BINDING
from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.strategy import parts
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.types import Errors, Tree


def validate_mutating_binding(doc: Tree) -> Errors:
    spec = doc.get("spec") or {}
    match = spec.get("matchResources")
    yield from validate_binding(doc, spec)
    if match is not None:
        yield from validate_mutated(match, "spec.matchResources")


def validate_mutating_binding_update(new: Tree, old: Tree) -> Errors:
    return validate_mutating_binding(new)


KIND = Kind(
    "admissionregistration.k8s.io",
    "mutatingadmissionpolicybindings",
    defaults=common.admission_policy_binding,
    strategy=Strategy(
        namespaced=False,
        on_create=parts.first_generation,
        on_update=parts.bump_if_spec_changed,
        needs_version_on_update=True,
        check_create=validate_mutating_binding,
        check_update=validate_mutating_binding_update,
        warn=common.of_admission,
    ),
    table=POLICY_BINDING,
)
