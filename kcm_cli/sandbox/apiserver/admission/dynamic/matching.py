"""Matches writes by the rules, namespace selectors and object selectors of policies and webhooks.

upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/{policy/matching,webhook/predicates}
"""

from collections.abc import Mapping, Sequence

import msgspec

from kcm_cli.api.resource import GVR
from kcm_cli.machinery.labels import Selector
from kcm_cli.sandbox.apiserver.admission.dynamic.views import SCALE
from kcm_cli.sandbox.apiserver.errors import not_found
from kcm_cli.sandbox.apiserver.registry.catalog import Served
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.types import Attributes, Tree
from kcm_cli.sandbox.apiserver.validation.labels import compile_selector, selector_is_empty

NAMESPACES = GVR("", "v1", "namespaces")
REGISTRATION = "admissionregistration.k8s.io"
_EXEMPT = frozenset(
    {
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "validatingwebhookconfigurations",
    }
)
_REVIEWS = frozenset(
    {
        "localsubjectaccessreviews",
        "selfsubjectaccessreviews",
        "selfsubjectreviews",
        "selfsubjectrulesreviews",
        "subjectaccessreviews",
        "tokenreviews",
    }
)


def exempt(gvr: GVR, *, reviews: bool) -> bool:
    """Whether policies and webhooks do not apply: to their own configuration, and policies not to reviews."""
    if gvr.group == REGISTRATION:
        return gvr.plural in _EXEMPT
    return reviews and gvr.plural in _REVIEWS and gvr.group in ("authentication.k8s.io", "authorization.k8s.io")


class _Rule(msgspec.Struct, frozen=True):
    """RuleWithOperations, with the resourceNames of policies."""

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]
    scope: str
    names: frozenset[str]

    @classmethod
    def of(cls, doc: Tree) -> "_Rule":
        pairs = tuple((r.partition("/")[0], r.partition("/")[2]) for r in doc.get("resources") or ())
        return cls(
            frozenset(doc.get("operations") or ()),
            frozenset(doc.get("apiGroups") or ()),
            frozenset(doc.get("apiVersions") or ()),
            pairs,
            doc.get("scope") or "*",
            frozenset(doc.get("resourceNames") or ()),
        )

    def matches_kind(self, attrs: Attributes, gvr: GVR) -> bool:
        """Whether the rule matches by kind of write, operation and scope. ``gvr``: the resource in some version."""
        return (
            _has(self.operations, attrs.operation)
            and _has(self.groups, gvr.group)
            and _has(self.versions, gvr.version)
            and any(
                resource in ("*", gvr.plural) and subresource in ("*", attrs.subresource)
                for resource, subresource in self.resources
            )
            and self._in_scope(attrs)
        )

    def matches_name(self, attrs: Attributes) -> bool:
        return not self.names or attrs.name in self.names

    def _in_scope(self, attrs: Attributes) -> bool:
        if self.scope == "*":
            return True
        return (self.scope == "Namespaced") is attrs.resource.namespaced


def _has(items: frozenset[str], wanted: str) -> bool:
    return "*" in items or wanted in items


class Match:
    """A compiled MatchResources, or the same parts of a webhook. empty_matches: without rules it matches all writes."""

    def __init__(self, doc: Tree, rules: Sequence[Tree], *, empty_matches: bool) -> None:
        self._rules = tuple(map(_Rule.of, rules))
        self._excluded = tuple(map(_Rule.of, doc.get("excludeResourceRules") or ()))
        self._namespaces = _selector(doc.get("namespaceSelector"))
        self._objects = _selector(doc.get("objectSelector"))
        self._everything = empty_matches and not self._rules
        self._exact = doc.get("matchPolicy") == "Exact"

    def choose(self, attrs: Attributes, versions: Sequence[Served]) -> Served | None:
        """The version that matches writes of this kind and operation, or None. ``versions``: the request's first."""
        if self._everything:
            return versions[0]
        if _any_kind(self._rules, attrs, versions[0]):
            return versions[0]
        if self._exact:
            return None
        pairs = ((rule, version) for rule in self._rules for version in versions[1:])
        return next((version for rule, version in pairs if rule.matches_kind(attrs, version.info.gvr)), None)

    def matches(self, attrs: Attributes, versions: Sequence[Served], chosen: Served, store: Store) -> bool:
        """Whether a write matches. Raises ApiError 404 if the namespace for a selector does not exist."""
        if not self._everything and not _any(self._rules, attrs, chosen):
            return False
        if any(_any(self._excluded, attrs, version) for version in (versions[:1] if self._exact else versions)):
            return False
        if self._objects is not None and not any(_selected(self._objects, doc) for doc in _labelled(attrs)):
            return False
        return self._namespaces is None or self._namespace_matches(attrs, store)

    def _namespace_matches(self, attrs: Attributes, store: Store) -> bool:
        assert self._namespaces is not None
        is_namespace = attrs.resource.gvr.plural == "namespaces" and not attrs.resource.gvr.group
        if not attrs.namespace and not is_namespace:
            return True
        if is_namespace and not attrs.subresource and attrs.operation in ("CREATE", "UPDATE"):
            return _selected(self._namespaces, attrs.obj)
        stored = store.get(NAMESPACES, "", attrs.namespace or attrs.name)
        if stored is None:
            raise not_found("", "namespaces", attrs.namespace or attrs.name)
        return _selected(self._namespaces, stored.doc)


def _any_kind(rules: tuple[_Rule, ...], attrs: Attributes, version: Served) -> bool:
    return any(rule.matches_kind(attrs, version.info.gvr) for rule in rules)


def _any(rules: tuple[_Rule, ...], attrs: Attributes, version: Served) -> bool:
    return any(rule.matches_kind(attrs, version.info.gvr) and rule.matches_name(attrs) for rule in rules)


def _selector(doc: Tree | None) -> Selector | None:
    """The selector; None if it selects everything."""
    return None if selector_is_empty(doc) else compile_selector(doc)


def _labelled(attrs: Attributes) -> Sequence[Tree | None]:
    """The objects whose labels count: a Scale has none, whatever labels the object has that is scaled."""
    documents = (attrs.obj, attrs.old)
    if attrs.subresource != SCALE:
        return documents
    return [{} for document in documents if document is not None]


def _selected(selector: Selector, doc: Tree | None) -> bool:
    if doc is None:
        return False
    labels: Mapping[str, str] = (doc.get("metadata") or {}).get("labels") or {}
    return selector.matches(labels)
