"""MutatingAdmissionPolicy.

upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/mutating
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kcm_cli.api.resource import GVR
from kcm_cli.machinery import cel, patches
from kcm_cli.machinery.errors import PatchError
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver import defaulting
from kcm_cli.sandbox.apiserver.admission.denial import denied
from kcm_cli.sandbox.apiserver.admission.dynamic.conditions import ConditionError
from kcm_cli.sandbox.apiserver.admission.dynamic.matching import REGISTRATION, exempt
from kcm_cli.sandbox.apiserver.admission.dynamic.merging import MergeError, Merger
from kcm_cli.sandbox.apiserver.admission.dynamic.policies import (
    Binding,
    ConfigurationError,
    Params,
    Policies,
    Policy,
)
from kcm_cli.sandbox.apiserver.admission.dynamic.replacing import replace_object
from kcm_cli.sandbox.apiserver.admission.dynamic.scope import (
    Condition,
    Scope,
    request_scope,
    with_variables,
)
from kcm_cli.sandbox.apiserver.registry.catalog import Catalog
from kcm_cli.sandbox.apiserver.security.authorizer import Authorizer
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.types import ApiError, Attributes, Tree

POLICIES = GVR(REGISTRATION, "v1", "mutatingadmissionpolicies")
BINDINGS = GVR(REGISTRATION, "v1", "mutatingadmissionpolicybindings")


class MutationError(Exception):
    """A mutation could not be made."""


@dataclass(frozen=True, slots=True)
class _Mutation:
    """is_apply: the expression gives an apply configuration; else a JSON patch."""

    expression: Condition
    is_apply: bool


_Body = tuple[_Mutation, ...]


def _compile(spec: Tree) -> _Body:
    found: list[_Mutation] = []
    for each in spec.get("mutations") or ():
        is_apply = each.get("patchType") == "ApplyConfiguration"
        source: Tree = each.get("applyConfiguration" if is_apply else "jsonPatch") or {}
        found.append(_Mutation(Condition(source.get("expression", "")), is_apply))
    return tuple(found)


class MutatingPolicies:
    """See the module."""

    def __init__(self, store: Store, authorizer: Authorizer, catalog: Catalog, merger: Merger) -> None:
        self._store = store
        self._authorizer = authorizer
        self._merger = merger
        self._params = Params(store, catalog)
        self._policies = Policies(store, POLICIES, BINDINGS, _compile)

    def admit(self, attrs: Attributes, *, again: frozenset[str] = frozenset()) -> frozenset[str]:
        """Change the object. Raises ApiError.

        Returns the names of the policies that want to be asked again if somebody else changes the object.
        again: only those are asked, in a second round.
        """
        policies = self._policies.for_write(attrs)
        if not policies or attrs.obj is None or exempt(attrs.resource.gvr, reviews=True):
            return frozenset()
        asked: set[str] = set()
        objections: list[str] = []
        for policy in policies:
            if again and policy.name not in again:
                continue
            if not policy.match.matches(attrs, self._store):
                continue
            for binding in policy.bindings:
                objections += self._run(attrs, policy, binding)
            if policy.spec.get("reinvocationPolicy") == "IfNeeded":
                asked.add(policy.name)
        if objections:
            raise _refusal(attrs, objections)
        return frozenset(asked)

    def _run(self, attrs: Attributes, policy: Policy[_Body], binding: Binding) -> list[str]:
        """The objections of a policy that cannot work."""
        if binding.match is not None and not binding.match.matches(attrs, self._store):
            return []
        try:
            params = self._params.collect(policy.spec, binding.spec, attrs.namespace)
            for param in params:
                self._mutate(attrs, policy, param)
        except ConfigurationError as error:
            why = f"failed to configure binding: {error}"
        except (ConditionError, MutationError) as error:
            why = str(error)
        else:
            return []
        if policy.ignores_failures:
            return []
        return [f"policy '{policy.name}' with binding '{binding.name}' denied request: {why}"]

    def _mutate(self, attrs: Attributes, policy: Policy[_Body], param: Tree | None) -> None:
        """Raises ConditionError, MutationError."""
        if not policy.conditions.hold(self._scope(attrs, policy, param)):
            return
        for mutation in policy.body:
            try:
                value = mutation.expression.evaluate(self._scope(attrs, policy, param))
            except cel.CelError as error:
                raise MutationError(str(error)) from None
            changed = self._applied(attrs, value) if mutation.is_apply else _patched(attrs, value)
            replace_object(attrs, changed)
            defaulting.apply(attrs.resource, changed)

    def _scope(self, attrs: Attributes, policy: Policy[_Body], param: Tree | None) -> Scope:
        """Anew for each mutation, since each sees what the former ones did."""
        scope = request_scope(attrs, self._store, self._authorizer)
        return with_variables({**scope, "params": param}, policy.variables)

    def _applied(self, attrs: Attributes, value: cel.Value) -> Tree:
        assert attrs.obj is not None
        if not isinstance(value, cel.MadeObject) or value.cel_type != "Object":
            raise MutationError("unsupported return type from ApplyConfiguration expression")
        if wrong := _misnamed(value, "Object"):
            raise MutationError(f"type mismatch: {wrong}")
        configuration = _plain(value)
        assert isinstance(configuration, dict)
        try:
            return self._merger.merge(attrs.resource, attrs.obj, configuration)
        except MergeError as error:
            raise MutationError(f"error applying patch: {error}") from None


def _patched(attrs: Attributes, value: cel.Value) -> Tree:
    assert attrs.obj is not None
    if not isinstance(value, list):
        raise MutationError("type mismatch: JSONPatchType.expression should evaluate to array")
    operations: list[Tree] = []
    for item in value:
        if not isinstance(item, cel.MadeObject) or item.cel_type != "JSONPatch":
            raise MutationError("type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch")
        operation = _plain(item)
        assert isinstance(operation, dict)
        operations.append(operation)
    try:
        changed = patches.json_patch(patches.copy(attrs.obj), operations)
    except PatchError as error:
        if "test" in {operation.get("op") for operation in operations} and "test" in str(error):
            return attrs.obj
        raise MutationError(f"JSON Patch: {error}") from None
    assert isinstance(changed, dict)
    return changed


def _plain(value: cel.Value) -> cel.Value:
    """Without the names of types."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _misnamed(value: cel.Value, path: str) -> str:
    """An object's type must be named by the fields that lead to it."""
    if isinstance(value, cel.MadeObject) and value.cel_type != path:
        return f"unexpected type name {quote(value.cel_type)}, expected {quote(path)}, which matches field name path"
    if isinstance(value, cel.MadeObject):
        return next((why for key, item in value.items() if (why := _misnamed(item, f"{path}.{key}"))), "")
    if isinstance(value, Mapping):
        return next((why for item in value.values() if (why := _misnamed(item, path))), "")
    if isinstance(value, list):
        return next((why for item in value if (why := _misnamed(item, path))), "")
    return ""


def _refusal(attrs: Attributes, objections: list[str]) -> ApiError:
    error = denied(attrs, "", [{"message": text} for text in objections])
    error.status["message"] = objections[0]
    error.status["reason"] = "Invalid"
    return error
