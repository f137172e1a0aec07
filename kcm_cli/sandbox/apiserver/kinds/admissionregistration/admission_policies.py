"""Admission policies and their bindings.

Source: pkg/apis/admissionregistration/validation/validation.go#ValidateValidatingAdmissionPolicy,
#ValidateMutatingAdmissionPolicy.
"""

from kcm_cli.api.policy_expressions import environment
from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.kinds.admissionregistration import admission_rules, common
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels, metadata

Variables = common.Variables
_MUTATED = ("*", "CONNECT", "CREATE", "UPDATE")


def types(spec: Tree) -> Variables:
    return common.variable_types(spec.get("variables") or (), params=spec.get("paramKind") is not None)


def validate_common(spec: Tree, known: Tree | None) -> Errors:
    """What policies of both kinds have; unchanged conditions are not looked at again."""
    policy, kind, match = spec.get("failurePolicy"), spec.get("paramKind"), spec.get("matchConstraints")
    if policy is None:
        yield errors.required("spec.failurePolicy")
    elif policy not in admission_rules.FAILURE_POLICIES:
        yield errors.not_supported("spec.failurePolicy", policy, admission_rules.FAILURE_POLICIES)
    if kind is not None:
        yield from _param_kind(kind, "spec.paramKind")
    if match is None:
        yield errors.required("spec.matchConstraints")
    else:
        yield from admission_rules.validate_match(match, "spec.matchConstraints")
        if not match.get("resourceRules"):
            yield errors.required("spec.matchConstraints.resourceRules")
        if "mutations" in spec:
            yield from validate_mutated(match, "spec.matchConstraints")
    items = spec.get("matchConditions") or []
    if known is not None and items == ((known.get("spec") or {}).get("matchConditions") or []):
        return
    yield from admission_rules.validate_conditions(items, "spec.matchConditions", params=kind is not None)


def validate_mutated(match: Tree, path: str) -> Errors:
    yield from (
        errors.not_supported(f"{path}.resourceRules.operations", operation, _MUTATED)
        for rule in match.get("resourceRules") or ()
        for operation in rule.get("operations") or ()
        if operation not in _MUTATED
    )


def _param_kind(kind: Tree, path: str) -> Errors:
    version, name = kind.get("apiVersion", ""), kind.get("kind", "")
    if not version:
        yield errors.required(f"{path}.apiVersion")
    elif version.count("/") > 1:
        yield errors.invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}")
    else:
        yield from _group_version(version, f"{path}.apiVersion")
    if not name:
        yield errors.required(f"{path}.kind")
    elif messages := names.dns1035_label(name.lower()):
        detail = f"may have mixed case, but should otherwise match: {','.join(messages)}"
        yield errors.invalid(f"{path}.kind", name, detail)


def _group_version(text: str, path: str) -> Errors:
    group, _, version = text.rpartition("/")
    if group and (messages := names.dns1123_subdomain(group)):
        yield errors.invalid(path, group, ",".join(messages))
    if not version:
        yield errors.invalid(path, text, "version must be specified")
    elif messages := names.dns1035_label(version):
        yield errors.invalid(path, version, ",".join(messages))


def validate_variables(spec: Tree) -> Errors:
    params = spec.get("paramKind") is not None
    for index, variable in enumerate(spec.get("variables") or ()):
        name, text, path = variable.get("name", ""), variable.get("expression", ""), f"spec.variables[{index}]"
        if not name.strip():
            yield errors.required(f"{path}.name", "name is not specified")
        elif not common.is_identifier(name):
            yield errors.invalid(f"{path}.name", name, "must be a valid CEL identifier")
        if text.strip():
            known = common.variable_types((spec.get("variables") or [])[:index], params=params)
            yield from common.validate_expression(
                text, f"{path}.expression", (), environment(params=params, variables=known or {})
            )
        else:
            yield errors.required(f"{path}.expression", "expression is not specified")


def validate_binding(doc: Tree, spec: Tree) -> Errors:
    yield from metadata.validate_plain_meta(doc["metadata"], False, metadata.subdomain)
    name, ref, match = spec.get("policyName", ""), spec.get("paramRef"), spec.get("matchResources")
    if name:
        yield from errors.invalid_each("spec.policyName", name, names.dns1123_subdomain(name))
    else:
        yield errors.required("spec.policyName")
    if ref is not None:
        yield from _param_ref(ref, "spec.paramRef")
    if match is not None:
        yield from admission_rules.validate_match(match, "spec.matchResources")


def _param_ref(ref: Tree, path: str) -> Errors:
    name, selector, missing = ref.get("name", ""), ref.get("selector"), ref.get("parameterNotFoundAction")
    exclusive = "name and selector are mutually exclusive"
    if name:
        yield from errors.invalid_each(f"{path}.name", name, names.path_segment(name))
        if selector is not None:
            yield errors.forbidden(f"{path}.name", exclusive)
    if selector is not None:
        yield from labels.validate_selector(selector, f"{path}.selector")
        if name:
            yield errors.forbidden(f"{path}.selector", exclusive)
    elif not name:
        yield errors.required(path, "one of name or selector must be specified")
    yield from errors.one_of(f"{path}.parameterNotFoundAction", missing or "", ("Deny", "Allow"))
