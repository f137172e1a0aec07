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
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, metadata

_RESULTS = {"applyConfiguration": OBJECT, "jsonPatch": list_of(PATCH)}
_PATCHES = ("ApplyConfiguration", "JSONPatch")
_REINVOCATIONS = ("IfNeeded", "Never")


def validate_mutating(doc: Tree) -> Errors:
    return _mutating(doc, None)


def validate_mutating_update(new: Tree, old: Tree) -> Errors:
    return _mutating(new, old)


def _mutating(doc: Tree, known: Tree | None) -> Errors:
    spec = doc.get("spec") or {}
    yield from metadata.validate_plain_meta(doc["metadata"], False, metadata.subdomain)
    yield from validate_common({"mutations": None, **spec}, known)
    yield from validate_variables(spec)
    mutations = spec.get("mutations") or []
    if not mutations:
        yield errors.required("spec.mutations", "mutations must contain at least one item")
    params, variables = spec.get("paramKind") is not None, types(spec)
    for index, mutation in enumerate(mutations):
        yield from _mutation(mutation, params, variables, f"spec.mutations[{index}]")
    again = spec.get("reinvocationPolicy", "")
    yield from errors.one_of("spec.reinvocationPolicy", again, _REINVOCATIONS)


def _mutation(mutation: Tree, params: bool, variables: Variables, path: str) -> Errors:
    kind = mutation.get("patchType", "")
    if kind not in _PATCHES:
        yield from errors.one_of(f"{path}.patchType", kind, _PATCHES)
        return
    wanted, other = ("jsonPatch", "applyConfiguration") if kind == "JSONPatch" else ("applyConfiguration", "jsonPatch")
    patch = mutation.get(wanted)
    if patch is None:
        yield errors.required(f"{path}.{wanted}", f"must be specified when patchType is {kind}")
    else:
        text, place = patch.get("expression", "").strip(), f"{path}.{wanted}.expression"
        if text:
            yield from common.validate_expression(
                text, place, [_RESULTS[wanted]], environment(params=params, patches=True, variables=variables)
            )
        else:
            yield errors.required(place)
    if mutation.get(other) is not None:
        yield errors.invalid(f"{path}.{other}", f"{{{other}}}", f"must not be specified when patchType is {kind}")


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
