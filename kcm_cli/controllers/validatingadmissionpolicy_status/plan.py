"""Type checks a policy's expressions for each kind that it matches.

upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/validating/typechecking.go
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from kcm_cli.api.admissionregistration import VALIDATING_ADMISSION_POLICIES, ValidatingAdmissionPolicy
from kcm_cli.api.policy_expressions import environment, problem, variable_type
from kcm_cli.controllers.validatingadmissionpolicy_status.kinds import Kind
from kcm_cli.machinery import cel
from kcm_cli.machinery.cel.check import Fields
from kcm_cli.machinery.cel.declarations import Declarations
from kcm_cli.machinery.cel.types import DYN
from kcm_cli.machinery.codec import Doc
from kcm_cli.planning.actions import Apply
from kcm_cli.planning.status import applied_status

MANAGER = "validatingadmissionpolicy-status"
_FAILED = "compilation failed: "


class Declared(msgspec.Struct, frozen=True):
    """The type of a kind, and the declarations of its fields."""

    type: cel.Type
    declarations: Declarations


class ExpressionWarning(msgspec.Struct, frozen=True):
    """A warning about the expression at a field path."""

    field_ref: str
    text: str


def plan(
    policy: ValidatingAdmissionPolicy, kinds: Mapping[Kind, Declared], *, params: bool, declared_params: Declared | None
) -> Iterator[ExpressionWarning | None]:
    """The warnings of all validations, in order. ``params``: whether the policy has parameters; without a declared type
    they are dynamic.

    Yields None after each expression that was checked for a kind, so that the caller can yield to other tasks.
    """
    known: list[tuple[Kind, cel.Environment]] = []
    for kind, own in sorted(kinds.items()):
        variables: dict[str, cel.Type] = {}
        types = _typed(environment(params=params, variables=variables), own, params, declared_params)
        for variable in policy.spec.variables:
            variables[variable.name] = variable_type(variable.expression, types)
            yield None
        known.append((kind, types))
    for place, text in _expressions(policy):
        found = ""
        for kind, types in known:
            wrong = problem(text, types, ())
            found += ("\n" if found else "") + f"{kind}: {wrong.removeprefix(_FAILED)}\n" if wrong else ""
            yield None
        if found:
            yield ExpressionWarning(place, found)


def status(policy: ValidatingAdmissionPolicy, found: Sequence[ExpressionWarning]) -> Apply:
    """The status with these warnings."""
    warnings: list[object] = [{"fieldRef": one.field_ref, "warning": one.text} for one in found]
    checked: Doc = {"expressionWarnings": warnings} if warnings else {}
    new: Doc = {"observedGeneration": policy.metadata.generation, "typeChecking": checked}
    return applied_status(VALIDATING_ADMISSION_POLICIES, policy, new, MANAGER)


def _expressions(policy: ValidatingAdmissionPolicy) -> Iterator[tuple[str, str]]:
    for index, validation in enumerate(policy.spec.validations):
        place = f"spec.validations[{index}]"
        yield f"{place}.expression", validation.expression
        if validation.message_expression:
            yield f"{place}.messageExpression", validation.message_expression


def _typed(base: cel.Environment, own: Declared, params: bool, declared_params: Declared | None) -> cel.Environment:
    names = {**base.variables, "object": own.type, "oldObject": own.type}
    del names["authorizer.requestResource"]  # upstream: typechecking.go#buildEnvSet does not know it
    if params:
        names["params"] = declared_params.type if declared_params is not None else DYN
    sources = [one.declarations for one in (own, declared_params) if one is not None]

    def objects(name: str) -> Fields | None:
        for source in sources:
            if (found := source.fields(name)) is not None:
                return found
        return base.objects(name)

    return cel.Environment(names, objects)
