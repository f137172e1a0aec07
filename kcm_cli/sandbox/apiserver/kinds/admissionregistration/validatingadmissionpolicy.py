"""ValidatingAdmissionPolicy.

upstream: pkg/apis/admissionregistration/v1/defaults.go, pkg/apis/admissionregistration/validation,
pkg/registry/admissionregistration/validatingadmissionpolicy/strategy.go, pkg/printers/internalversion/printers.go
"""

import re

from msgspec.structs import replace

from kcm_cli.api.policy_expressions import environment
from kcm_cli.machinery.cel import Environment
from kcm_cli.machinery.cel.types import BOOL, NULL, STRING
from kcm_cli.sandbox.apiserver.kinds.admissionregistration import common
from kcm_cli.sandbox.apiserver.kinds.admissionregistration.admission_policies import (
    types,
    validate_common,
    validate_variables,
)
from kcm_cli.sandbox.apiserver.kinds.admissionregistration.common import policy_table
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import conditions, errors, go_print, labels, rules

_ANNOTATIONS_MAX, _VALUE_MAX = 20, 5 * 1024


def _check(doc: Tree, old: Tree | None) -> Errors:
    spec = doc.get("spec") or {}
    yield from validate_common(spec, old)
    yield from validate_variables(spec)
    known = environment(params=spec.get("paramKind") is not None, variables=types(spec))
    plain = environment(params=spec.get("paramKind") is not None, authorizer=False, variables=types(spec))
    validations, annotations = spec.get("validations") or [], spec.get("auditAnnotations") or []
    if not validations and not annotations:
        yield errors.required("spec.validations", _NEITHER)
        yield errors.required("spec.auditAnnotations", _NEITHER)
        return
    for index, item in enumerate(validations):
        path = f"spec.validations[{index}]"
        yield from common.validate_expression(item, path, [BOOL], known, "expression is not specified")
        yield from _message_expression(item.get("messageExpression", ""), f"{path}.messageExpression", plain)
        yield from _MESSAGE(item, path)
    if len(annotations) > _ANNOTATIONS_MAX:
        shown = go_print.internal("[]admissionregistration.AuditAnnotation", annotations)
        detail = f"must not have more than {_ANNOTATIONS_MAX} auditAnnotations"
        yield errors.invalid("spec.auditAnnotations", shown, detail)
    unique = rules.Unique()
    for index, item in enumerate(annotations):
        path = f"spec.auditAnnotations[{index}]"
        yield from _annotation(item, doc["metadata"].get("name", ""), known, path)
        yield from unique(item.get("key", ""), f"{path}.key")


def _message_expression(text: str, path: str, known: Environment) -> Errors:
    if text.strip():
        yield from common.checked_expression(text, path, [STRING], known)
    elif text:
        yield errors.invalid(path, text, "must be non-empty if specified")


def _message(message: str, path: str) -> Errors:
    if message and not message.strip():
        yield errors.invalid(path, message, "must be non-empty if specified")
    elif _line_break(message.strip()):
        yield errors.invalid(path, message, "must not contain line breaks")


def _annotation(item: Tree, name: str, known: Environment, path: str) -> Errors:
    key, text, place = item.get("key", ""), item.get("valueExpression", "").strip(), f"{path}.valueExpression"
    if name:
        yield from labels.validate_key(f"{name}/{key}", f"{path}.key")
    else:
        yield errors.invalid(f"{path}.key", key, "requires metadata.name be non-empty")
    if not text:
        yield errors.required(place, "valueExpression is not specified")
    elif len(text.encode()) > _VALUE_MAX:
        yield errors.required(place, f"must not exceed {_VALUE_MAX} bytes in length")
    else:
        yield from common.checked_expression(text, place, (STRING, NULL), known)


def _not_blank(warning: Tree, path: str) -> Errors:
    return () if warning.get("fieldRef", "").strip() else [errors.required(f"{path}.fieldRef")]


_MESSAGE = rules.fields(
    rules.optional("message", _message),
    rules.maybe_one_of("reason", "Forbidden", "Invalid", "RequestEntityTooLarge"),
)
_CHECKED = rules.fields(rules.each("expressionWarnings", rules.fields(rules.required("warning"), _not_blank)))
_STATUS = rules.fields(
    rules.optional("typeChecking", _CHECKED), rules.optional("conditions", conditions.validate_conditions)
)

_NEITHER = "validations or auditAnnotations must contain at least one item"
_line_break = re.compile(r"[\n\r]").search


KIND = Kind(
    "admissionregistration.k8s.io",
    "validatingadmissionpolicies",
    defaults=common.admission_policy,
    strategy=replace(
        common.POLICY_STRATEGY,
        new_status={},
        status_keeps_metadata=True,
        check=_check,
        check_status=lambda new, old: _STATUS(new.get("status") or {}, "status"),
    ),
    table=policy_table(
        "Validations",
        "Validations indicates the number of validation rules defined in this configuration",
        "spec.validations",
    ),
)
