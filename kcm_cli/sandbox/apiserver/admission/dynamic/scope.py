"""The variables of expressions in policies and match conditions.

upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/cel
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from kcm_cli.machinery import cel
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.admission.dynamic.authorizer_value import AuthorizerValue
from kcm_cli.sandbox.apiserver.admission.dynamic.matching import NAMESPACES
from kcm_cli.sandbox.apiserver.admission.dynamic.views import View, kind_of
from kcm_cli.sandbox.apiserver.registry.catalog import Served
from kcm_cli.sandbox.apiserver.security.authorizer import Authorizer
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.types import Attributes, Tree

_BUDGET = 10_000_000
_NO_MORE = "validation failed due to running out of cost budget, no further validation rules will be run"
_HIDDEN_METADATA = ("managedFields", "ownerReferences")
Scope = dict[str, cel.Value]


class OutOfBudget(Exception):
    """The expressions of a policy exceed their cost budget."""


class Budget:
    """The cost budget of a policy's expressions for an object, including its variables."""

    def __init__(self) -> None:
        self._left = _BUDGET

    def spend(self, condition: "Condition") -> None:
        """Subtract the cost of an expression's last run. Raises OutOfBudget."""
        self._left -= condition.cost
        if self._left < 0:
            raise OutOfBudget(_NO_MORE)


class Condition:
    """An expression. If it cannot be compiled, each run fails with the reason."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._program: cel.Program | None = None
        self._problem = ""
        try:
            self._program = cel.Program(text)
        except cel.CelProblem as problem:
            self._problem = f"compilation failed: {problem}"

    @property
    def cost(self) -> int:
        """The cost of the last run."""
        return 0 if self._program is None else self._program.cost

    def evaluate(self, scope: Mapping[str, cel.Value]) -> cel.Value:
        """The value. Raises CelError with the message for clients."""
        if self._program is None:
            raise cel.CelError(f"compilation error: {self._problem}")
        try:
            return self._program.evaluate(scope)
        except cel.CelError as error:
            raise cel.CelError(f"expression '{self.text}' resulted in error: {error}") from None

    def plain(self, scope: Mapping[str, cel.Value]) -> cel.Value:
        """The value. Raises CelError with the end of the message about a variable."""
        if self._program is None:
            raise cel.CelError(f"compile: {self._problem}")
        try:
            return self._program.evaluate(scope)
        except cel.CelError as error:
            raise cel.CelError(f"evaluate: {error}") from None


def request_scope(view: View, store: Store, authorizer: Authorizer) -> Scope:
    """The variables ``object``, ``oldObject``, ``request``, ``namespaceObject`` and ``authorizer``."""
    attrs = view.attrs
    return {
        "object": view.obj,
        "oldObject": view.old,
        "request": cel.Lazy(lambda: admission_request(view)),
        "namespaceObject": cel.Lazy(lambda: namespace_object(attrs, store)),
        "authorizer": AuthorizerValue(authorizer, attrs.user, attrs),
    }


def with_variables(scope: Scope, variables: Sequence[tuple[str, Condition]], budget: Budget) -> Scope:
    """The scope with ``variables``. Each is evaluated at its first use, which may raise OutOfBudget. Later ones may use
    earlier ones.
    """
    found: dict[str, cel.Value] = {}
    inner = {**scope, "variables": LazyFields(found)}
    for name, condition in variables:
        found[name] = cel.Lazy(_evaluation(name, condition, inner, budget))
    return inner


def _evaluation(name: str, condition: Condition, scope: Scope, budget: Budget) -> Callable[[], cel.Value]:
    def run() -> cel.Value:
        try:
            return condition.plain(scope)
        except cel.CelError as error:
            raise cel.CelError(f"composited variable {quote(name)} fails to {error}") from None
        finally:
            budget.spend(condition)

    return run


class LazyFields(Mapping[str, cel.Value]):
    """A map whose values are evaluated on access."""

    def __init__(self, fields: Mapping[str, cel.Value]) -> None:
        self._fields = fields

    def __getitem__(self, key: str) -> cel.Value:
        value = self._fields[key]
        return value() if isinstance(value, cel.Lazy) else value

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)


def admission_request(view: View) -> Tree:
    """The AdmissionRequest for expressions and webhooks, without its objects."""
    attrs = view.attrs
    request: Tree = {
        "uid": "",
        "kind": _named("kind", *view.kind),
        "resource": _resource(view.served),
        "requestKind": _named("kind", *kind_of(view.asked, attrs)),
        "requestResource": _resource(view.asked),
    }
    if attrs.subresource:
        request["subResource"] = request["requestSubResource"] = attrs.subresource
    if attrs.name:
        request["name"] = attrs.name
    if attrs.namespace:
        request["namespace"] = attrs.namespace
    request |= {
        "operation": attrs.operation,
        "userInfo": attrs.user.info(),
        "dryRun": attrs.dry_run,
        "options": attrs.options or None,
    }
    return request


def _named(key: str, group: str, version: str, name: str) -> Tree:
    return {"group": group, "version": version, key: name}


def _resource(served: Served) -> Tree:
    gvr = served.info.gvr
    return _named("resource", gvr.group, gvr.version, gvr.plural)


def namespace_object(attrs: Attributes, store: Store) -> Tree | None:
    """The variable ``namespaceObject``: without managedFields and ownerReferences; None for cluster-scoped objects."""
    if not attrs.resource.namespaced:
        return None
    stored = store.get(NAMESPACES, "", attrs.namespace)
    if stored is None:
        return None
    doc: Tree = stored.doc
    metadata = {key: value for key, value in doc["metadata"].items() if key not in _HIDDEN_METADATA}
    return {"metadata": metadata, "spec": doc.get("spec") or {}, "status": doc.get("status") or {}}
