"""MutatingAdmissionPolicy.

Source: pkg/apis/admissionregistration/v1/defaults.go, pkg/apis/admissionregistration/validation,
pkg/registry/admissionregistration/mutatingadmissionpolicy/strategy.go, pkg/printers/internalversion/printers.go.
"""

from kcm_cli.api.policy_expressions import OBJECT, PATCH, environment
from kcm_cli.machinery.cel.types import list_of
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
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors, metadata

_RESULTS = {"applyConfiguration": OBJECT, "jsonPatch": list_of(PATCH)}
_PATCHES = ("ApplyConfiguration", "JSONPatch")
_REINVOCATIONS = ("IfNeeded", "Never")


def validate_mutating(doc: Tree) -> list[FieldError]:
    return _mutating(doc, None)


def validate_mutating_update(new: Tree, old: Tree) -> list[FieldError]:
    return _mutating(new, old)


def _mutating(doc: Tree, known: Tree | None) -> list[FieldError]:
    spec = doc.get("spec") or {}
    found = metadata.validate_plain_meta(doc["metadata"], False, metadata.subdomain)
    found += validate_common({"mutations": None, **spec}, known) + validate_variables(spec)
    mutations = spec.get("mutations") or []
    if not mutations:
        found.append(errors.required("spec.mutations", "mutations must contain at least one item"))
    params, variables = spec.get("paramKind") is not None, types(spec)
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
            found += common.validate_expression(
                text, place, [_RESULTS[wanted]], environment(params=params, patches=True, variables=variables)
            )
        else:
            found.append(errors.required(place))
    if mutation.get(other) is not None:
        detail = f"must not be specified when patchType is {kind}"
        found.append(errors.invalid(f"{path}.{other}", f"{{{other}}}", detail))
    return found


KIND = Kind(
    "admissionregistration.k8s.io",
    "mutatingadmissionpolicies",
    defaults=common.admission_policy,
    strategy=Strategy(
        namespaced=False,
        on_create=parts.first_generation,
        on_update=parts.bump_if_spec_changed,
        needs_version_on_update=True,
        check_create=validate_mutating,
        check_update=validate_mutating_update,
        warn=common.of_admission,
    ),
    table=Layout(
        policy_columns("Mutations", "Mutation indicates the number of mutations rules defined in this configuration"),
        policy_cells("mutations"),
    ),
)
