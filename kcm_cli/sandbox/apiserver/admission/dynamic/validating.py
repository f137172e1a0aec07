"""ValidatingAdmissionPolicy.

upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/validating
"""

from collections.abc import Iterator

import msgspec

from kcm_cli.api.resource import GVR
from kcm_cli.machinery import cel
from kcm_cli.sandbox.apiserver.admission.denial import denied
from kcm_cli.sandbox.apiserver.admission.dynamic.conditions import ConditionError
from kcm_cli.sandbox.apiserver.admission.dynamic.matching import REGISTRATION
from kcm_cli.sandbox.apiserver.admission.dynamic.policies import (
    Binding,
    ConfigurationError,
    Disabled,
    Params,
    Policies,
    Policy,
)
from kcm_cli.sandbox.apiserver.admission.dynamic.scope import (
    Budget,
    Condition,
    OutOfBudget,
    Scope,
    request_scope,
    with_variables,
)
from kcm_cli.sandbox.apiserver.admission.dynamic.views import Kind, Versions
from kcm_cli.sandbox.apiserver.registry.catalog import Catalog
from kcm_cli.sandbox.apiserver.security.authorizer import Authorizer
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.types import ApiError, Attributes, Tree

POLICIES = GVR(REGISTRATION, "v1", "validatingadmissionpolicies")
BINDINGS = GVR(REGISTRATION, "v1", "validatingadmissionpolicybindings")
_MAX_MESSAGE = 5 * 1024
_CODES = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413, "Invalid": 422}


class _Validation(msgspec.Struct, frozen=True):
    """An expression, and the message and reason if it is false."""

    expression: Condition
    message: str
    message_expression: Condition | None
    reason: str


class _Body(msgspec.Struct, frozen=True):
    validations: tuple[_Validation, ...]
    annotations: tuple[Condition, ...]


class _Refusal(msgspec.Struct, frozen=True):
    """A denial. ``binding``: empty if the policy itself failed."""

    policy: str
    binding: str
    message: str
    reason: str

    def error(self, attrs: Attributes) -> ApiError:
        """The error response."""
        with_binding = f" with binding '{self.binding}'" if self.binding else ""
        message = f"ValidatingAdmissionPolicy '{self.policy}'{with_binding} denied request: {self.message}"
        error = denied(attrs, message, [{"message": message}])
        reason = self.reason or "Invalid"
        error.code = error.status["code"] = _CODES.get(reason, 422)
        error.status["reason"] = reason
        return error


def _compile(spec: Tree) -> _Body:
    validations = tuple(
        _Validation(
            Condition(each.get("expression", "")),
            (each.get("message") or "").strip(),
            Condition(each["messageExpression"]) if each.get("messageExpression") else None,
            each.get("reason") or "",
        )
        for each in spec.get("validations") or ()
    )
    annotations = tuple(Condition(each.get("valueExpression", "")) for each in spec.get("auditAnnotations") or ())
    return _Body(validations, annotations)


class ValidatingPolicies:
    """See the module."""

    def __init__(
        self, store: Store, authorizer: Authorizer, catalog: Catalog, versions: Versions, disabled: Disabled
    ) -> None:
        self._store = store
        self._authorizer = authorizer
        self._params = Params(store, catalog)
        self._policies = Policies(store, versions, POLICIES, BINDINGS, _compile, disabled)

    def concern(self, attrs: Attributes) -> bool:
        """Whether a policy may match writes of this kind."""
        return self._policies.concern(attrs)

    def validate(self, attrs: Attributes) -> None:
        """Check a write. Raises ApiError, Unconverted."""
        scopes: dict[Kind, Scope] = {}
        refusals: list[_Refusal] = []
        for policy, binding, view in self._policies.bound(attrs, self._params):
            scope = scopes.get(view.kind)
            if scope is None:
                scope = scopes[view.kind] = request_scope(view, self._store, self._authorizer)
            refusals += self._judge(attrs, policy, binding, scope)
        if refusals:
            raise refusals[0].error(attrs)

    def _judge(
        self, attrs: Attributes, policy: Policy[_Body], binding: Binding | None, scope: Scope
    ) -> Iterator[_Refusal]:
        """The denials of a policy with a binding. Adds warnings if the binding has the action Warn."""
        try:
            params = self._params.collect(policy.spec, binding, attrs.namespace)
        except ConfigurationError as error:
            if not policy.ignores_failures:
                yield _Refusal(policy.name, "" if binding is None else binding.name, str(error), "")
            return
        assert binding is not None
        actions = binding.spec.get("validationActions") or ()
        for param in params:
            for message, reason in _objections(policy, {**scope, "params": param}):
                if "Warn" in actions:
                    attrs.warnings.append(
                        f"Validation failed for ValidatingAdmissionPolicy '{policy.name}' with binding "
                        f"'{binding.name}': {message}"
                    )
                if "Deny" in actions:
                    yield _Refusal(policy.name, binding.name, message, reason)


def _objections(policy: Policy[_Body], scope: Scope) -> list[tuple[str, str]]:
    """Message and reason of each expression that is false or fails."""
    try:
        if not policy.conditions.hold(scope):
            return []
    except ConditionError as error:
        return [(str(error), "")]
    try:
        return [*_invalid(policy, scope), *_unannotated(policy, _unauthorized(scope))]
    except OutOfBudget as error:
        return [] if policy.ignores_failures else [(str(error), "")]


def _unauthorized(scope: Scope) -> Scope:
    """The scope of messages and audit annotations, whose variables know no authorizer, either."""
    return {name: value for name, value in scope.items() if name != "authorizer"}


def _invalid(policy: Policy[_Body], scope: Scope) -> list[tuple[str, str]]:
    """The results of validations. Raises OutOfBudget."""
    budget = Budget()
    whole = with_variables(scope, policy.variables, budget)
    results: list[bool | cel.CelError] = []
    for validation in policy.body.validations:
        try:
            results.append(validation.expression.evaluate(whole) is True)
        except cel.CelError as error:
            results.append(error)
        finally:
            budget.spend(validation.expression)
    failure = ""
    texts: list[str] = []
    try:
        texts += _messages(policy, _unauthorized(scope), budget)
    except OutOfBudget as error:  # then no validation counts
        failure = f"failed messageExpression: {error}"
    found: list[tuple[str, str]] = []
    for index, (result, validation) in enumerate(zip(results, policy.body.validations, strict=True)):
        if isinstance(result, cel.CelError) or failure:
            if not policy.ignores_failures:
                found.append((str(result) if isinstance(result, cel.CelError) else failure, ""))
        elif not result:
            found.append((texts[index], validation.reason))
    return found


def _unannotated(policy: Policy[_Body], scope: Scope) -> Iterator[tuple[str, str]]:
    """The failures of audit annotations. Raises OutOfBudget."""
    budget = Budget()
    scope = with_variables(scope, policy.variables, budget)
    for annotation in policy.body.annotations:
        try:
            annotation.evaluate(scope)
        except cel.CelError as error:
            if not policy.ignores_failures:
                yield str(error), ""
        finally:
            budget.spend(annotation)


def _messages(policy: Policy[_Body], scope: Scope, budget: Budget) -> Iterator[str]:
    """The message of each validation, should it be false. All are evaluated. Raises OutOfBudget."""
    scope = with_variables(scope, policy.variables, budget)
    for validation in policy.body.validations:
        text = "" if validation.message_expression is None else _evaluated(validation.message_expression, scope, budget)
        if not text or "\n" in text or len(text.encode()) > _MAX_MESSAGE:
            text = validation.message or f"failed expression: {validation.expression.text.strip()}"
        yield text


def _evaluated(message: Condition, scope: Scope, budget: Budget) -> str:
    """The text of a messageExpression; empty if it fails. Raises OutOfBudget."""
    try:
        value = message.evaluate(scope)
    except cel.CelError:
        return ""
    finally:
        budget.spend(message)
    return value.strip() if isinstance(value, str) else ""
