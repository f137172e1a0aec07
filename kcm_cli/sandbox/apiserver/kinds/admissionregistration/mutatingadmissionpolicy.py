"""MutatingAdmissionPolicy.

upstream: pkg/apis/admissionregistration/v1/defaults.go, pkg/apis/admissionregistration/validation,
pkg/registry/admissionregistration/mutatingadmissionpolicy/strategy.go, pkg/printers/internalversion/printers.go
"""

from msgspec.structs import replace

from kcm_cli.api.policy_expressions import OBJECT, PATCH, environment
from kcm_cli.machinery.cel.types import list_of
from kcm_cli.sandbox.apiserver.kinds.admissionregistration import common
from kcm_cli.sandbox.apiserver.kinds.admissionregistration.admission_policies import (
    Variables,
    types,
    validate_common,
    validate_variables,
)
from kcm_cli.sandbox.apiserver.kinds.admissionregistration.common import policy_table
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, rules

_RESULTS = {"applyConfiguration": OBJECT, "jsonPatch": list_of(PATCH)}


def _check(doc: Tree, old: Tree | None) -> Errors:
    spec = doc.get("spec") or {}
    yield from validate_common({"mutations": None, **spec}, old)
    yield from validate_variables(spec)
    yield from _SOME(spec, "spec")
    params, variables = spec.get("paramKind") is not None, types(spec)
    for index, mutation in enumerate(spec.get("mutations") or ()):
        yield from _mutation(mutation, params, variables, f"spec.mutations[{index}]")
    yield from _AGAIN(spec, "spec")


def _mutation(mutation: Tree, params: bool, variables: Variables, path: str) -> Errors:
    kind = mutation.get("patchType", "")
    if found := [*_PATCH(mutation, path)]:
        yield from found
        return
    wanted, other = ("jsonPatch", "applyConfiguration") if kind == "JSONPatch" else ("applyConfiguration", "jsonPatch")
    patch = mutation.get(wanted)
    if patch is None:
        yield errors.required(f"{path}.{wanted}", f"must be specified when patchType is {kind}")
    else:
        stripped = {"expression": patch.get("expression", "").strip()}
        known = environment(params=params, patches=True, variables=variables or {})
        yield from common.validate_expression(stripped, f"{path}.{wanted}", [_RESULTS[wanted]], known)
    if mutation.get(other) is not None:
        yield errors.invalid(f"{path}.{other}", f"{{{other}}}", f"must not be specified when patchType is {kind}")


_SOME = rules.fields(rules.required("mutations", detail="mutations must contain at least one item"))
_AGAIN = rules.fields_of("admissionregistration.v1.MutatingAdmissionPolicySpec", rules.one_of("reinvocationPolicy"))
_PATCH = rules.fields_of("admissionregistration.v1.Mutation", rules.one_of("patchType"))


KIND = Kind(
    "admissionregistration.k8s.io",
    "mutatingadmissionpolicies",
    defaults=common.admission_policy,
    strategy=replace(common.POLICY_STRATEGY, check=_check),
    table=policy_table(
        "Mutations",
        "Mutation indicates the number of mutations rules defined in this configuration",
        "spec.mutations",
    ),
)
