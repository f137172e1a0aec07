"""MutatingAdmissionPolicy.

upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/mutating
"""

from base64 import b64encode
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import cast

import msgspec

from kcm_cli.api.resource import GVR
from kcm_cli.machinery import cel, codec, patches
from kcm_cli.machinery.cel.texts import simple_text
from kcm_cli.machinery.cel.values import type_name
from kcm_cli.machinery.errors import PatchError
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.admission.denial import denied
from kcm_cli.sandbox.apiserver.admission.dynamic.conditions import ConditionError
from kcm_cli.sandbox.apiserver.admission.dynamic.matching import REGISTRATION
from kcm_cli.sandbox.apiserver.admission.dynamic.merging import MergeError, Merger
from kcm_cli.sandbox.apiserver.admission.dynamic.natives import NotNative, native
from kcm_cli.sandbox.apiserver.admission.dynamic.policies import (
    Binding,
    ConfigurationError,
    Disabled,
    Params,
    Policies,
    Policy,
)
from kcm_cli.sandbox.apiserver.admission.dynamic.replacing import Replacer
from kcm_cli.sandbox.apiserver.admission.dynamic.rounds import Rounds
from kcm_cli.sandbox.apiserver.admission.dynamic.scope import (
    Budget,
    Condition,
    OutOfBudget,
    Scope,
    request_scope,
    with_variables,
)
from kcm_cli.sandbox.apiserver.admission.dynamic.views import SCALE, Versions, View
from kcm_cli.sandbox.apiserver.registry.catalog import Catalog
from kcm_cli.sandbox.apiserver.schema import Schemas
from kcm_cli.sandbox.apiserver.schema.bodies import Target
from kcm_cli.sandbox.apiserver.security.authorizer import Authorizer
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.types import ApiError, Attributes, Tree

POLICIES = GVR(REGISTRATION, "v1", "mutatingadmissionpolicies")
BINDINGS = GVR(REGISTRATION, "v1", "mutatingadmissionpolicybindings")
_TEST_FAILED = "test failed"
_NO_JSON = "JSONPath valueExpression evaluated to a type that could not marshal to JSON"
_NO_TYPE = "failed to convert patch object to typed object: no corresponding type for autoscaling/v1, Kind=Scale"
"""upstream cannot apply configurations to scales."""
_MOST_PRECISE, _FIRST_EXPONENT = 2**53 - 1, 1e21
"""As in protobuf's JSON, larger integers are strings. Floats from the second number on have an exponent."""


class MutationError(Exception):
    """A mutation failed."""


class _Mutation(msgspec.Struct, frozen=True):
    """is_apply: the expression returns an apply configuration, otherwise a JSON patch."""

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


_Key = tuple[str, str, str, str]
"""The identity of an invocation: policy, binding, namespace and name of the parameter."""


class _Invocation(msgspec.Struct, frozen=True):
    """A policy with a binding and a parameter."""

    policy: Policy[_Body]
    binding: Binding
    view: View
    param: Tree | None

    @property
    def key(self) -> _Key:
        metadata = {} if self.param is None else self.param["metadata"]
        return (self.policy.name, self.binding.name, metadata.get("namespace") or "", metadata.get("name") or "")

    def objection(self, error: Exception) -> "_Objection":
        """Against the request, for an error of the policy's expressions."""
        return _objection(self.policy, self.binding, str(error), "Invalid")


class _Objection(msgspec.Struct, frozen=True):
    message: str
    reason: str


def _objection(policy: Policy[_Body], binding: Binding | None, why: str, reason: str) -> _Objection:
    by = quote(policy.name) if binding is None else f"'{policy.name}' with binding '{binding.name}'"
    return _Objection(f"policy {by} denied request: {why}", reason)


class MutatingPolicies:
    """See the module."""

    def __init__(
        self,
        store: Store,
        authorizer: Authorizer,
        catalog: Catalog,
        versions: Versions,
        schemas: Schemas,
        disabled: Disabled,
    ) -> None:
        self._store = store
        self._authorizer = authorizer
        self._merger = Merger(schemas)
        self._replacer = Replacer(schemas)
        self._params = Params(store, catalog)
        self._policies = Policies(store, versions, POLICIES, BINDINGS, _compile, disabled)

    def concern(self, attrs: Attributes) -> bool:
        """Whether a policy may match writes of this kind."""
        return attrs.obj is not None and self._policies.concern(attrs)

    def admit(self, attrs: Attributes, rounds: Rounds) -> None:
        """Change the object. Raises ApiError."""
        objections: list[_Objection] = []
        invocations = list(self._invocations(attrs, objections))
        if rounds.second:
            rounds.policies.begin(attrs)
        for invocation in invocations:
            objections += self._invoke(invocation, rounds)
        rounds.policies.end(attrs)
        if objections:
            raise _refusal(attrs, objections)

    def _invocations(self, attrs: Attributes, objections: list[_Objection]) -> Iterator[_Invocation]:
        for policy, binding, view in self._policies.bound(attrs, self._params):
            try:
                params = self._params.collect(policy.spec, binding, attrs.namespace)
            except ConfigurationError as error:
                if not policy.ignores_failures:
                    objections.append(_objection(policy, binding, str(error), "Forbidden"))
                continue
            assert binding is not None
            for param in params:
                yield _Invocation(policy, binding, view.at_once, param)

    def _invoke(self, invocation: _Invocation, rounds: Rounds) -> Iterator[_Objection]:
        policy, reinvocation = invocation.policy, rounds.policies
        try:
            if not policy.conditions.hold(self._scope(invocation, Budget())):
                return
        except ConditionError as error:
            if not policy.ignores_failures:
                yield invocation.objection(error)
            return
        if rounds.second and not reinvocation.due(invocation.key):
            return
        if policy.spec.get("reinvocationPolicy") == "IfNeeded":
            reinvocation.add(invocation.key)  # it is invoked again after its own changes, too
        before = codec.encode(invocation.view.attrs.obj)
        for mutation in policy.body:
            try:
                self._mutate(invocation, mutation)
            except MutationError as error:
                if not policy.ignores_failures:
                    yield invocation.objection(error)
        if codec.encode(invocation.view.attrs.obj) != before:
            reinvocation.changed()
            rounds.needed = True

    def _mutate(self, invocation: _Invocation, mutation: _Mutation) -> None:
        """Evaluate a mutation and apply it. Raises MutationError, and ApiError 500 if the result is no object."""
        view = invocation.view
        budget = Budget()
        try:
            value = mutation.expression.evaluate(self._scope(invocation, budget))
            budget.spend(mutation.expression)
        except (cel.CelError, OutOfBudget) as error:
            raise MutationError(str(error)) from None
        current = view.obj
        assert current is not None
        changed = self._applied(view, current, value) if mutation.is_apply else _patched(current, value)
        if changed is not current:
            self._replacer.replace(view, changed, strict=not mutation.is_apply)

    def _scope(self, invocation: _Invocation, budget: Budget) -> Scope:
        """The variables of a mutation, which sees the changes of the previous ones."""
        scope = request_scope(invocation.view, self._store, self._authorizer)
        return with_variables({**scope, "params": invocation.param}, invocation.policy.variables, budget)

    def _applied(self, view: View, current: Tree, value: cel.Value) -> Tree:
        if not isinstance(value, cel.MadeObject) or value.cel_type != "Object":
            raise MutationError("unsupported return type from ApplyConfiguration expression")
        if wrong := _misnamed(value, "Object"):
            raise MutationError("type mismatch: " + "\n".join(wrong))
        try:
            configuration = cast("Tree", native(value))
            if view.attrs.subresource == SCALE:
                raise MergeError(_NO_TYPE)
            return self._merger.merge(Target(*view.kind), current, configuration)
        except NotNative:
            raise MutationError("invalid return type: *dynamic.ObjectVal") from None
        except MergeError as error:
            raise MutationError(f"error applying patch: {error}") from None


def _patched(current: Tree, value: cel.Value) -> object:
    if not isinstance(value, list):
        raise MutationError("type mismatch: JSONPatchType.expression should evaluate to array")
    operations: list[Tree] = []
    for item in value:
        if not isinstance(item, cel.MadeObject) or item.cel_type != "JSONPatch":
            raise MutationError("type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch")
        given = item.get("value")
        if isinstance(given, cel.MadeObject) and (wrong := _misnamed(given, given.cel_type)):
            raise MutationError("type mismatch: " + "\n".join(wrong))
        operation = _json(item)
        assert isinstance(operation, dict)
        operations.append(operation)
    try:
        return patches.json_patch(patches.copy(current), operations)
    except PatchError as error:
        if str(error).endswith(_TEST_FAILED):
            return current
        raise MutationError(f"JSON Patch: {error}") from None


def _json(value: cel.Value) -> cel.Value:
    """A CEL value as JSON, without type names. Raises MutationError if it has no JSON form."""
    if isinstance(value, Mapping):
        if wrong := [key for key in value if not isinstance(key, str)]:
            raise MutationError(f"{_NO_JSON}: unsupported type conversion from '{type_name(wrong[0])}' to string")
        return {key: _json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json(item) for item in value]
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        return int(value) if abs(value) <= _MOST_PRECISE else str(int(value))
    if isinstance(value, float) and value - value == 0:
        return int(value) if value.is_integer() and abs(value) < _FIRST_EXPONENT else value
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, (datetime, timedelta)):
        return simple_text(value)
    if isinstance(value, cel.Optional) and value.present:
        return _json(value.value)
    raise MutationError(f"{_NO_JSON}: {_why_no_json(value)}")


def _why_no_json(value: cel.Value) -> str:
    if isinstance(value, float):
        number = f"google.protobuf.Value.number_value: invalid {simple_text(value)} value"
        return f"json: error calling MarshalJSON for type *structpb.Value: proto: {number}"
    if isinstance(value, cel.Optional):
        return "optional.none() dereference"
    kind = type_name(value)
    if kind == "type":
        return "type conversion not supported for 'type'"
    return f"type conversion error from '{kind}' to '*structpb.Value'"


def _misnamed(value: cel.Value, path: str) -> list[str]:
    """Errors for objects whose type name is not the path to them."""
    found: list[str] = []
    if isinstance(value, cel.MadeObject):
        if value.cel_type != path:
            why = "which matches field name path from root Object type"
            found.append(f"unexpected type name {quote(value.cel_type)}, expected {quote(path)}, {why}")
        return found + [why for key, item in value.items() for why in _misnamed(item, f"{path}.{key}")]
    if isinstance(value, Mapping):
        return [why for item in value.values() for why in _misnamed(item, path)]
    return [why for item in value for why in _misnamed(item, path)] if isinstance(value, list) else []


def _refusal(attrs: Attributes, objections: list[_Objection]) -> ApiError:
    error = denied(attrs, "", [{"message": each.message} for each in objections])
    error.status["message"] = objections[0].message
    error.status["reason"] = objections[0].reason
    return error
