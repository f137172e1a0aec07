"""Admission policies and their bindings.

Source: pkg/apis/admissionregistration/validation/validation.go#ValidateValidatingAdmissionPolicy,
#ValidateMutatingAdmissionPolicy.
"""

from kcm_cli.api.policy_expressions import environment
from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.kinds.admissionregistration import admission_rules, common
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels, metadata

Variables = common.Variables
_MUTATED = ("*", "CONNECT", "CREATE", "UPDATE")


def types(spec: Tree) -> Variables:
    return common.variable_types(spec.get("variables") or (), params=spec.get("paramKind") is not None)


def validate_common(spec: Tree, known: Tree | None) -> list[FieldError]:
    """What policies of both kinds have; unchanged conditions are not looked at again."""
    policy, kind, match = spec.get("failurePolicy"), spec.get("paramKind"), spec.get("matchConstraints")
    found: list[FieldError] = []
    if policy is None:
        found.append(errors.required("spec.failurePolicy"))
    elif policy not in admission_rules.FAILURE_POLICIES:
        found.append(errors.not_supported("spec.failurePolicy", policy, admission_rules.FAILURE_POLICIES))
    if kind is not None:
        found += _param_kind(kind, "spec.paramKind")
    if match is None:
        found.append(errors.required("spec.matchConstraints"))
    else:
        found += admission_rules.validate_match(match, "spec.matchConstraints")
        if not match.get("resourceRules"):
            found.append(errors.required("spec.matchConstraints.resourceRules"))
        if "mutations" in spec:
            found += validate_mutated(match, "spec.matchConstraints")
    items = spec.get("matchConditions") or []
    if known is not None and items == ((known.get("spec") or {}).get("matchConditions") or []):
        return found
    return found + admission_rules.validate_conditions(items, "spec.matchConditions", params=kind is not None)


def validate_mutated(match: Tree, path: str) -> list[FieldError]:
    return [
        errors.not_supported(f"{path}.resourceRules.operations", operation, _MUTATED)
        for rule in match.get("resourceRules") or ()
        for operation in rule.get("operations") or ()
        if operation not in _MUTATED
    ]


def _param_kind(kind: Tree, path: str) -> list[FieldError]:
    version, name = kind.get("apiVersion", ""), kind.get("kind", "")
    found: list[FieldError] = []
    if not version:
        found.append(errors.required(f"{path}.apiVersion"))
    elif version.count("/") > 1:
        detail = f"unexpected GroupVersion string: {version}"
        found.append(errors.invalid(f"{path}.apiVersion", version, detail))
    else:
        found += _group_version(version, f"{path}.apiVersion")
    if not name:
        found.append(errors.required(f"{path}.kind"))
    elif messages := names.dns1035_label(name.lower()):
        detail = f"may have mixed case, but should otherwise match: {','.join(messages)}"
        found.append(errors.invalid(f"{path}.kind", name, detail))
    return found


def _group_version(text: str, path: str) -> list[FieldError]:
    group, _, version = text.rpartition("/")
    found: list[FieldError] = []
    if group and (messages := names.dns1123_subdomain(group)):
        found.append(errors.invalid(path, group, ",".join(messages)))
    if not version:
        found.append(errors.invalid(path, text, "version must be specified"))
    elif messages := names.dns1035_label(version):
        found.append(errors.invalid(path, version, ",".join(messages)))
    return found


def validate_variables(spec: Tree) -> list[FieldError]:
    params = spec.get("paramKind") is not None
    found: list[FieldError] = []
    for index, variable in enumerate(spec.get("variables") or ()):
        name, text, path = variable.get("name", ""), variable.get("expression", ""), f"spec.variables[{index}]"
        if not name.strip():
            found.append(errors.required(f"{path}.name", "name is not specified"))
        elif not common.is_identifier(name):
            found.append(errors.invalid(f"{path}.name", name, "must be a valid CEL identifier"))
        if text.strip():
            known = common.variable_types((spec.get("variables") or [])[:index], params=params)
            found += common.validate_expression(
                text, f"{path}.expression", (), environment(params=params, variables=known or {})
            )
        else:
            found.append(errors.required(f"{path}.expression", "expression is not specified"))
    return found


def validate_binding(doc: Tree, spec: Tree) -> list[FieldError]:
    found = metadata.validate_plain_meta(doc["metadata"], False, metadata.subdomain)
    name, ref, match = spec.get("policyName", ""), spec.get("paramRef"), spec.get("matchResources")
    if name:
        found += errors.invalid_each("spec.policyName", name, names.dns1123_subdomain(name))
    else:
        found.append(errors.required("spec.policyName"))
    if ref is not None:
        found += _param_ref(ref, "spec.paramRef")
    return found if match is None else found + admission_rules.validate_match(match, "spec.matchResources")


def _param_ref(ref: Tree, path: str) -> list[FieldError]:
    name, selector, missing = ref.get("name", ""), ref.get("selector"), ref.get("parameterNotFoundAction")
    exclusive = "name and selector are mutually exclusive"
    found: list[FieldError] = []
    if name:
        found += errors.invalid_each(f"{path}.name", name, names.path_segment(name))
        if selector is not None:
            found.append(errors.forbidden(f"{path}.name", exclusive))
    if selector is not None:
        found += labels.validate_selector(selector, f"{path}.selector")
        if name:
            found.append(errors.forbidden(f"{path}.selector", exclusive))
    elif not name:
        found.append(errors.required(path, "one of name or selector must be specified"))
    return found + errors.one_of(f"{path}.parameterNotFoundAction", missing or "", ("Deny", "Allow"))
