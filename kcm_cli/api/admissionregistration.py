"""Views of the admissionregistration.k8s.io group."""

from kcm_cli.api.resource import GVR, Resource
from kcm_cli.machinery.meta import Object, View


class ResourceRule(View, frozen=True, gc=False):
    api_groups: tuple[str, ...] = ()
    api_versions: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()


class MatchResources(View, frozen=True, gc=False):
    resource_rules: tuple[ResourceRule, ...] = ()


class ParamKind(View, frozen=True, gc=False):
    api_version: str = ""
    kind: str = ""


class Variable(View, frozen=True, gc=False):
    name: str = ""
    expression: str = ""


class Validation(View, frozen=True, gc=False):
    expression: str = ""
    message_expression: str = ""


class ValidatingAdmissionPolicySpec(View, frozen=True, gc=False):
    param_kind: ParamKind | None = None
    match_constraints: MatchResources | None = None
    validations: tuple[Validation, ...] = ()
    variables: tuple[Variable, ...] = ()


class ValidatingAdmissionPolicyStatus(View, frozen=True, gc=False):
    observed_generation: int = 0


class ValidatingAdmissionPolicy(Object, frozen=True, gc=False, kw_only=True):
    spec: ValidatingAdmissionPolicySpec = ValidatingAdmissionPolicySpec()
    status: ValidatingAdmissionPolicyStatus = ValidatingAdmissionPolicyStatus()


VALIDATING_ADMISSION_POLICIES = Resource(
    GVR("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies"),
    "ValidatingAdmissionPolicy",
    ValidatingAdmissionPolicy,
    namespaced=False,
)
