"""Compiled policies, bindings and parameters, for validating and mutating policies.

upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/generic
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

import msgspec

from kcm_cli.api.resource import GVR
from kcm_cli.sandbox.apiserver.admission.dynamic.chosen import Chosen, Kept
from kcm_cli.sandbox.apiserver.admission.dynamic.conditions import MatchConditions
from kcm_cli.sandbox.apiserver.admission.dynamic.matching import Match
from kcm_cli.sandbox.apiserver.admission.dynamic.scope import Condition
from kcm_cli.sandbox.apiserver.admission.dynamic.views import Versions, View
from kcm_cli.sandbox.apiserver.registry.catalog import Catalog, Served
from kcm_cli.sandbox.apiserver.store import Store, Stored
from kcm_cli.sandbox.apiserver.types import Attributes, Tree
from kcm_cli.sandbox.apiserver.validation.labels import compile_selector

T = TypeVar("T")


class ConfigurationError(Exception):
    """A binding, or a policy if ``binding`` is None, has parameters that cannot be found."""

    def __init__(self, binding: "Binding | None", why: str) -> None:
        super().__init__(f"failed to configure {'policy' if binding is None else 'binding'}: {why}")


class Binding(msgspec.Struct, frozen=True):
    """A compiled binding."""

    name: str
    spec: Tree
    match: Match | None


class Policy(msgspec.Struct, Generic[T], frozen=True):
    """A compiled policy. ``body``: its validations or mutations."""

    name: str
    spec: Tree
    match: Match
    conditions: MatchConditions
    variables: tuple[tuple[str, Condition], ...]
    bindings: tuple[Binding, ...]
    body: T

    @property
    def ignores_failures(self) -> bool:
        return bool(self.spec.get("failurePolicy") == "Ignore")


Disabled = frozenset[tuple[str, str]]
"""Policies that are left out, by their resource and name."""


class Policies(Chosen[Policy[T]]):
    """All policies of a kind with their bindings, compiled after changes."""

    def __init__(
        self,
        store: Store,
        versions: Versions,
        policies: GVR,
        bindings: GVR,
        compile_body: Callable[[Tree], T],
        disabled: Disabled,
    ) -> None:
        super().__init__(store, versions, (policies, bindings), self._compile, reviews=True)
        self._policies, self._bindings = policies, bindings
        self._compile_body = compile_body
        self._disabled = disabled
        self._kept_policies, self._kept_bindings = Kept(self._policy), Kept(_binding)

    def bound(self, attrs: Attributes, params: "Params") -> Iterator[tuple[Policy[T], Binding | None, View]]:
        """The policies that match a write, sorted by name, with each matching binding; with None if the policy's
        paramKind is not served. Raises ApiError.
        """
        versions = self._versions.of(attrs)
        for policy, view in self.matching(attrs):
            known = params.known(policy.spec)
            for binding in policy.bindings if known else ():
                if self._binds(binding, attrs, versions):
                    yield policy, binding, view
            if not known:
                yield policy, None, view

    def _binds(self, binding: Binding, attrs: Attributes, versions: Sequence[Served]) -> bool:
        match = binding.match
        if match is None:
            return True
        chosen = match.choose(attrs, versions)
        return chosen is not None and match.matches(attrs, versions, chosen, self._store)

    def _compile(self) -> Iterator[Policy[T]]:
        bound: dict[str, list[Binding]] = {}
        for binding in self._kept_bindings.of(self._store.scan(self._bindings)):
            bound.setdefault(binding.spec.get("policyName", ""), []).append(binding)
        kind = self._policies.plural
        every = self._store.scan(self._policies)
        used = (each for each in every if each.name in bound and (kind, each.name) not in self._disabled)
        for policy in self._kept_policies.of(used):
            yield msgspec.structs.replace(policy, bindings=tuple(bound[policy.name]))

    def _policy(self, stored: Stored) -> Policy[T]:
        """Compile a policy, without bindings."""
        spec = _spec(stored)
        constraints: Tree = spec.get("matchConstraints") or {}
        ignore = spec.get("failurePolicy") == "Ignore"
        variables = tuple((each["name"], Condition(each["expression"])) for each in spec.get("variables") or ())
        return Policy(
            stored.name,
            spec,
            Match(constraints, constraints.get("resourceRules") or (), empty_matches=True),
            MatchConditions(spec.get("matchConditions") or (), ignore_failures=ignore),
            variables,
            (),
            self._compile_body(spec),
        )


def _binding(stored: Stored) -> Binding:
    spec = _spec(stored)
    resources: Tree | None = spec.get("matchResources")
    match = None
    if resources is not None:
        match = Match(resources, resources.get("resourceRules") or (), empty_matches=True)
    return Binding(stored.name, spec, match)


def _spec(stored: Stored) -> Tree:
    doc: Tree = stored.doc
    return doc.get("spec") or {}


class Params:
    """Finds the parameters of bindings."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store = store
        self._catalog = catalog

    def known(self, policy: Tree) -> bool:
        """Whether a policy has no paramKind, or it is served."""
        kind: Tree | None = policy.get("paramKind")
        return kind is None or self._catalog.by_kind(kind.get("apiVersion", ""), kind.get("kind", "")) is not None

    def collect(self, policy: Tree, binding: Binding | None, namespace: str) -> list[Tree | None]:
        """The parameters with which to run a policy; None: run it without one. Raises ConfigurationError."""
        kind: Tree | None = policy.get("paramKind")
        if kind is None:
            return [None]
        version, name = kind.get("apiVersion", ""), kind.get("kind", "")
        served = self._catalog.by_kind(version, name)
        if served is None or binding is None:
            group = version if "/" in version else f"/{version}"
            raise ConfigurationError(
                binding, f"failed to find resource referenced by paramKind: '{group}, Kind={name}'"
            )
        ref: Tree | None = binding.spec.get("paramRef")
        if ref is None:
            return [None]
        where = ""
        if served.info.namespaced:
            where = ref.get("namespace") or namespace
            if not where:
                raise ConfigurationError(
                    binding, "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                )
        elif ref.get("namespace"):
            raise ConfigurationError(
                binding, "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
            )
        found = self._find(served.storage, where, ref, binding)
        if not found and ref.get("parameterNotFoundAction") == "Deny":
            raise ConfigurationError(binding, "no params found for policy binding with `Deny` parameterNotFoundAction")
        return [{"apiVersion": kind["apiVersion"], "kind": kind["kind"], **doc} for doc in found]

    def _find(self, gvr: GVR, namespace: str, ref: Tree, binding: Binding) -> list[Tree]:
        if name := ref.get("name"):
            stored = self._store.get(gvr, namespace, name)
            return [] if stored is None else [stored.doc]
        selector = compile_selector(ref.get("selector"))
        if selector is None:
            raise ConfigurationError(binding, "invalid label selector")
        found: list[Tree] = [stored.doc for stored in self._store.list(gvr, namespace)]
        return [doc for doc in found if selector.matches(doc["metadata"].get("labels") or {})]
