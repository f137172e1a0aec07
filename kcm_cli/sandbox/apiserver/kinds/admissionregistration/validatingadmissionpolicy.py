"""ValidatingAdmissionPolicy.

Source: pkg/apis/admissionregistration/v1/defaults.go, pkg/apis/admissionregistration/validation,
pkg/registry/admissionregistration/validatingadmissionpolicy/strategy.go, pkg/printers/internalversion/printers.go.
"""

import re

from kcm_cli.api.policy_expressions import environment
from kcm_cli.machinery.cel.types import BOOL, NULL, STRING
from kcm_cli.sandbox.apiserver.apply.resets import SPEC_AND_METADATA
from kcm_cli.sandbox.apiserver.kinds.admissionregistration import common
from kcm_cli.sandbox.apiserver.kinds.admissionregistration.admission_policies import (
    Variables,
    types,
    validate_common,
    validate_variables,
)
from kcm_cli.sandbox.apiserver.kinds.admissionregistration.common import policy_cells, policy_columns
from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.strategy import parts
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import Layout
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import conditions, errors, go_print, labels, metadata

_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_ANNOTATIONS_MAX, _VALUE_MAX = 20, 5 * 1024
_NEITHER = "validations or auditAnnotations must contain at least one item"
_line_break = re.compile(r"[\n\r]").search


def validate_validating(doc: Tree) -> Errors:
    return _validating(doc, None)


def validate_validating_update(new: Tree, old: Tree) -> Errors:
    return _validating(new, old)


def _validating(doc: Tree, known: Tree | None) -> Errors:
    spec = doc.get("spec") or {}
    yield from metadata.validate_plain_meta(doc["metadata"], False, metadata.subdomain)
    yield from validate_common(spec, known)
    yield from validate_variables(spec)
    params, variables = spec.get("paramKind") is not None, types(spec)
    validations, annotations = spec.get("validations") or [], spec.get("auditAnnotations") or []
    if not validations and not annotations:
        paths = ("spec.validations", "spec.auditAnnotations")
        yield from (errors.required(path, _NEITHER) for path in paths)
        return
    for index, item in enumerate(validations):
        yield from _validation(item, params, variables, f"spec.validations[{index}]")
    if len(annotations) > _ANNOTATIONS_MAX:
        shown = go_print.internal("[]admissionregistration.AuditAnnotation", annotations)
        detail = f"must not have more than {_ANNOTATIONS_MAX} auditAnnotations"
        yield errors.invalid("spec.auditAnnotations", shown, detail)
    seen: set[str] = set()
    for index, item in enumerate(annotations):
        path, key = f"spec.auditAnnotations[{index}]", item.get("key", "")
        yield from _annotation(item, doc["metadata"].get("name", ""), params, variables, path)
        if key in seen:
            yield errors.duplicate(f"{path}.key", key)
        seen.add(key)


def _validation(item: Tree, params: bool, variables: Variables, path: str) -> Errors:
    text, message, reason = item.get("expression", ""), item.get("message", ""), item.get("reason")
    if text.strip():
        place = f"{path}.expression"
        yield from common.validate_expression(text, place, [BOOL], environment(params=params, variables=variables))
    else:
        yield errors.required(f"{path}.expression", "expression is not specified")
    computed = item.get("messageExpression", "")
    if computed.strip():
        yield from common.validate_expression(
            computed,
            f"{path}.messageExpression",
            [STRING],
            environment(params=params, authorizer=False, variables=variables),
        )
    elif computed:
        yield errors.invalid(f"{path}.messageExpression", computed, "must be non-empty if specified")
    if message and not message.strip():
        yield errors.invalid(f"{path}.message", message, "must be non-empty if specified")
    elif _line_break(message.strip()):
        yield errors.invalid(f"{path}.message", message, "must not contain line breaks")
    if reason is not None and reason not in _REASONS:
        yield errors.not_supported(f"{path}.reason", reason, _REASONS)


def _annotation(item: Tree, name: str, params: bool, variables: Variables, path: str) -> Errors:
    key, text = item.get("key", ""), item.get("valueExpression", "").strip()
    if name:
        yield from labels.validate_key(f"{name}/{key}", f"{path}.key")
    else:
        yield errors.invalid(f"{path}.key", key, "requires metadata.name be non-empty")
    place = f"{path}.valueExpression"
    if not text:
        yield errors.required(place, "valueExpression is not specified")
        return
    if len(text.encode()) > _VALUE_MAX:
        yield errors.required(place, f"must not exceed {_VALUE_MAX} bytes in length")
        return
    returns = (STRING, NULL)
    yield from common.validate_expression(text, place, returns, environment(params=params, variables=variables))


def validate_status(new: Tree, old: Tree) -> Errors:
    """The status of a validating policy."""
    status = new.get("status") or {}
    for index, warning in enumerate((status.get("typeChecking") or {}).get("expressionWarnings") or ()):
        path = f"status.typeChecking.expressionWarnings[{index}]"
        if not warning.get("warning"):
            yield errors.required(f"{path}.warning")
        if not warning.get("fieldRef", "").strip():
            yield errors.required(f"{path}.fieldRef")
    yield from conditions.validate_conditions(status.get("conditions") or [], "status.conditions")


KIND = Kind(
    "admissionregistration.k8s.io",
    "validatingadmissionpolicies",
    defaults=common.admission_policy,
    strategy=Strategy(
        namespaced=False,
        on_create=parts.new_with_status({}, generation=True),
        on_update=parts.spec_update,
        on_status=parts.strict_status_update,
        needs_version_on_update=True,
        check_create=validate_validating,
        check_update=validate_validating_update,
        check_status=validate_status,
        warn=common.of_admission,
    ),
    table=Layout(
        policy_columns(
            "Validations", "Validations indicates the number of validation rules defined in this configuration"
        ),
        policy_cells("validations"),
    ),
    writable={"status": SPEC_AND_METADATA},
)
