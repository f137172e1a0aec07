"""Admission policies and their bindings.

Source: pkg/apis/admissionregistration/validation/validation.go#ValidateValidatingAdmissionPolicy,
#ValidateMutatingAdmissionPolicy.
"""

import re

from kcm_cli.api.policy_expressions import OBJECT, PATCH
from kcm_cli.machinery import names
from kcm_cli.machinery.cel.types import BOOL, NULL, STRING, list_of
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import (
    admission_rules,
    cel_expressions,
    conditions,
    errors,
    go_print,
    labels,
    metadata,
)

Variables = cel_expressions.Variables
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_ACTIONS = ("Audit", "Deny", "Warn")
_RESULTS = {"applyConfiguration": OBJECT, "jsonPatch": list_of(PATCH)}
_PATCHES = ("ApplyConfiguration", "JSONPatch")
_MUTATED = ("*", "CONNECT", "CREATE", "UPDATE")
_REINVOCATIONS = ("IfNeeded", "Never")
_ANNOTATIONS_MAX, _VALUE_MAX = 20, 5 * 1024
_NEITHER = "validations or auditAnnotations must contain at least one item"
_DENY_AND_WARN = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the API response "
    "and headers serves no purpose)"
)
_line_break = re.compile(r"[\n\r]").search


def validate_validating(doc: Tree) -> list[FieldError]:
    return _validating(doc, None)


def validate_validating_update(new: Tree, old: Tree) -> list[FieldError]:
    return _validating(new, old)


def _validating(doc: Tree, known: Tree | None) -> list[FieldError]:
    spec = doc.get("spec") or {}
    found = metadata.validate_plain_meta(doc["metadata"], False, metadata.subdomain)
    found += _common(spec, known) + _variables(spec)
    params, variables = spec.get("paramKind") is not None, _types(spec)
    validations, annotations = spec.get("validations") or [], spec.get("auditAnnotations") or []
    if not validations and not annotations:
        paths = ("spec.validations", "spec.auditAnnotations")
        return found + [errors.required(path, _NEITHER) for path in paths]
    for index, item in enumerate(validations):
        found += _validation(item, params, variables, f"spec.validations[{index}]")
    if len(annotations) > _ANNOTATIONS_MAX:
        shown = go_print.internal("[]admissionregistration.AuditAnnotation", annotations)
        detail = f"must not have more than {_ANNOTATIONS_MAX} auditAnnotations"
        found.append(errors.invalid("spec.auditAnnotations", shown, detail))
    seen: set[str] = set()
    for index, item in enumerate(annotations):
        path, key = f"spec.auditAnnotations[{index}]", item.get("key", "")
        found += _annotation(item, doc["metadata"].get("name", ""), params, variables, path)
        if key in seen:
            found.append(errors.duplicate(f"{path}.key", key))
        seen.add(key)
    return found


def _types(spec: Tree) -> Variables:
    return cel_expressions.variable_types(spec.get("variables") or (), params=spec.get("paramKind") is not None)


def _common(spec: Tree, known: Tree | None) -> list[FieldError]:
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
            found += _mutated(match, "spec.matchConstraints")
    items = spec.get("matchConditions") or []
    if known is not None and items == ((known.get("spec") or {}).get("matchConditions") or []):
        return found
    return found + admission_rules.validate_conditions(items, "spec.matchConditions", params=kind is not None)


def _mutated(match: Tree, path: str) -> list[FieldError]:
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


def _variables(spec: Tree) -> list[FieldError]:
    params = spec.get("paramKind") is not None
    found: list[FieldError] = []
    for index, variable in enumerate(spec.get("variables") or ()):
        name, text, path = variable.get("name", ""), variable.get("expression", ""), f"spec.variables[{index}]"
        if not name.strip():
            found.append(errors.required(f"{path}.name", "name is not specified"))
        elif not cel_expressions.is_identifier(name):
            found.append(errors.invalid(f"{path}.name", name, "must be a valid CEL identifier"))
        if text.strip():
            known = cel_expressions.variable_types((spec.get("variables") or [])[:index], params=params)
            found += cel_expressions.validate_expression(
                text, f"{path}.expression", (), params=params, variables=known or {}
            )
        else:
            found.append(errors.required(f"{path}.expression", "expression is not specified"))
    return found


def _validation(item: Tree, params: bool, variables: Variables, path: str) -> list[FieldError]:
    text, message, reason = item.get("expression", ""), item.get("message", ""), item.get("reason")
    found: list[FieldError] = []
    if text.strip():
        place = f"{path}.expression"
        found += cel_expressions.validate_expression(text, place, [BOOL], params=params, variables=variables)
    else:
        found.append(errors.required(f"{path}.expression", "expression is not specified"))
    computed = item.get("messageExpression", "")
    if computed.strip():
        found += cel_expressions.validate_expression(
            computed, f"{path}.messageExpression", [STRING], params=params, authorizer=False, variables=variables
        )
    elif computed:
        detail = "must be non-empty if specified"
        found.append(errors.invalid(f"{path}.messageExpression", computed, detail))
    if message and not message.strip():
        found.append(errors.invalid(f"{path}.message", message, "must be non-empty if specified"))
    elif _line_break(message.strip()):
        found.append(errors.invalid(f"{path}.message", message, "must not contain line breaks"))
    if reason is not None and reason not in _REASONS:
        found.append(errors.not_supported(f"{path}.reason", reason, _REASONS))
    return found


def _annotation(item: Tree, name: str, params: bool, variables: Variables, path: str) -> list[FieldError]:
    key, text = item.get("key", ""), item.get("valueExpression", "").strip()
    if name:
        found = labels.validate_key(f"{name}/{key}", f"{path}.key")
    else:
        found = [errors.invalid(f"{path}.key", key, "requires metadata.name be non-empty")]
    place = f"{path}.valueExpression"
    if not text:
        return [*found, errors.required(place, "valueExpression is not specified")]
    if len(text.encode()) > _VALUE_MAX:
        return [*found, errors.required(place, f"must not exceed {_VALUE_MAX} bytes in length")]
    returns = (STRING, NULL)
    return found + cel_expressions.validate_expression(text, place, returns, params=params, variables=variables)


def validate_status(new: Tree, old: Tree) -> list[FieldError]:
    """The status of a validating policy."""
    status = new.get("status") or {}
    found: list[FieldError] = []
    for index, warning in enumerate((status.get("typeChecking") or {}).get("expressionWarnings") or ()):
        path = f"status.typeChecking.expressionWarnings[{index}]"
        if not warning.get("warning"):
            found.append(errors.required(f"{path}.warning"))
        if not warning.get("fieldRef", "").strip():
            found.append(errors.required(f"{path}.fieldRef"))
    return found + conditions.validate_conditions(status.get("conditions") or [], "status.conditions")


def validate_mutating(doc: Tree) -> list[FieldError]:
    return _mutating(doc, None)


def validate_mutating_update(new: Tree, old: Tree) -> list[FieldError]:
    return _mutating(new, old)


def _mutating(doc: Tree, known: Tree | None) -> list[FieldError]:
    spec = doc.get("spec") or {}
    found = metadata.validate_plain_meta(doc["metadata"], False, metadata.subdomain)
    found += _common({"mutations": None, **spec}, known) + _variables(spec)
    mutations = spec.get("mutations") or []
    if not mutations:
        found.append(errors.required("spec.mutations", "mutations must contain at least one item"))
    params, variables = spec.get("paramKind") is not None, _types(spec)
    for index, mutation in enumerate(mutations):
        found += _mutation(mutation, params, variables, f"spec.mutations[{index}]")
    again = spec.get("reinvocationPolicy", "")
    return found + errors.one_of("spec.reinvocationPolicy", again, _REINVOCATIONS)


def _mutation(mutation: Tree, params: bool, variables: Variables, path: str) -> list[FieldError]:
    kind = mutation.get("patchType", "")
    if kind not in _PATCHES:
        return errors.one_of(f"{path}.patchType", kind, _PATCHES)
    wanted, other = ("jsonPatch", "applyConfiguration") if kind == "JSONPatch" else ("applyConfiguration", "jsonPatch")
    found: list[FieldError] = []
    patch = mutation.get(wanted)
    if patch is None:
        found.append(errors.required(f"{path}.{wanted}", f"must be specified when patchType is {kind}"))
    else:
        text, place = patch.get("expression", "").strip(), f"{path}.{wanted}.expression"
        if text:
            found += cel_expressions.validate_expression(
                text, place, [_RESULTS[wanted]], params=params, patches=True, variables=variables
            )
        else:
            found.append(errors.required(place))
    if mutation.get(other) is not None:
        detail = f"must not be specified when patchType is {kind}"
        found.append(errors.invalid(f"{path}.{other}", f"{{{other}}}", detail))
    return found


def validate_validating_binding(doc: Tree) -> list[FieldError]:
    spec = doc.get("spec") or {}
    return _binding(doc, spec) + _actions(spec.get("validationActions") or [], "spec.validationActions")


def validate_validating_binding_update(new: Tree, old: Tree) -> list[FieldError]:
    return validate_validating_binding(new)


def validate_mutating_binding(doc: Tree) -> list[FieldError]:
    spec = doc.get("spec") or {}
    match = spec.get("matchResources")
    found = _binding(doc, spec)
    return found if match is None else found + _mutated(match, "spec.matchResources")


def validate_mutating_binding_update(new: Tree, old: Tree) -> list[FieldError]:
    return validate_mutating_binding(new)


def _binding(doc: Tree, spec: Tree) -> list[FieldError]:
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
