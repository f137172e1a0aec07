"""Admission policies and their bindings.

upstream: pkg/apis/admissionregistration/validation/validation.go#ValidateValidatingAdmissionPolicy,
#ValidateMutatingAdmissionPolicy
"""

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.kinds.admissionregistration import admission_rules, common
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels, rules

Variables = common.Variables
_MUTATED = rules.enum("*", "CONNECT", "CREATE", "UPDATE")


def validate_common(spec: Tree, known: Tree | None) -> Errors:
    """Check what policies of both kinds have. Unchanged match conditions are not checked again."""
    yield from _POLICY(spec, "spec")
    match = spec.get("matchConstraints") or {}
    if "mutations" in spec:
        yield from validate_mutated(match, "spec.matchConstraints")
    items = spec.get("matchConditions") or []
    if known is None or items != ((known.get("spec") or {}).get("matchConditions") or []):
        params = spec.get("paramKind") is not None
        yield from admission_rules.validate_conditions(items, "spec.matchConditions", params=params)


def validate_mutated(match: Tree, path: str) -> Errors:
    for rule in match.get("resourceRules") or ():
        for operation in rule.get("operations") or ():
            yield from _MUTATED(operation, f"{path}.resourceRules.operations")


def _version(text: str, path: str) -> Errors:
    group, _, version = text.rpartition("/")
    if "/" in group:
        yield errors.invalid(path, text, f"unexpected GroupVersion string: {text}")
        return
    if group and (messages := names.dns1123_subdomain(group)):
        yield errors.invalid(path, group, ",".join(messages))
    if not version:
        yield errors.invalid(path, text, "version must be specified")
    elif messages := names.dns1035_label(version):
        yield errors.invalid(path, version, ",".join(messages))


_POLICY = rules.fields_of(
    "admissionregistration.v1.ValidatingAdmissionPolicySpec",
    rules.present("failurePolicy", rules.enum(*admission_rules.FAILURE_POLICIES)),
    rules.optional(
        "paramKind", rules.fields(rules.required("apiVersion", _version), rules.required("kind", rules.KIND))
    ),
    rules.present("matchConstraints", admission_rules.validate_match, rules.fields(rules.required("resourceRules"))),
)


def types(spec: Tree) -> Variables:
    return common.variable_types(spec.get("variables") or (), params=spec.get("paramKind") is not None)


def validate_variables(spec: Tree) -> Errors:
    params = spec.get("paramKind") is not None
    variables = common.environments(spec.get("variables") or (), params=params)
    for index, (variable, known) in enumerate(variables):
        name, path = variable.get("name", ""), f"spec.variables[{index}]"
        if not name.strip():
            yield errors.required(f"{path}.name", "name is not specified")
        elif not common.is_identifier(name):
            yield errors.invalid(f"{path}.name", name, "must be a valid CEL identifier")
        yield from common.validate_expression(variable, path, (), known, "expression is not specified")


def _param_ref(ref: Tree, path: str) -> Errors:
    name, selector = ref.get("name", ""), ref.get("selector")
    exclusive = "name and selector are mutually exclusive"
    if name:
        yield from rules.SEGMENT(name, f"{path}.name")
        if selector is not None:
            yield errors.forbidden(f"{path}.name", exclusive)
    if selector is not None:
        yield from labels.validate_selector(selector, f"{path}.selector")
        if name:
            yield errors.forbidden(f"{path}.selector", exclusive)
    elif not name:
        yield errors.required(path, "one of name or selector must be specified")


_PARAM_REF = rules.fields(_param_ref, rules.one_of("parameterNotFoundAction", "Deny", "Allow"))
validate_binding = rules.fields(
    rules.required("policyName", rules.SUBDOMAIN),
    rules.optional("paramRef", _PARAM_REF),
    rules.optional("matchResources", admission_rules.validate_match),
)
