"""Resolves users to the rules of their roles, by indexes of the RBAC objects in the store.

The grants of a user are cached until an RBAC object changes. A check takes a few dictionary lookups.

upstream: pkg/registry/rbac/validation/rule.go
"""

from collections.abc import Iterator

import msgspec

from kcm_cli.api.resource import GVR
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.security.rules import Rule, rules_of
from kcm_cli.sandbox.apiserver.security.service_accounts import user_name
from kcm_cli.sandbox.apiserver.store import Event, Store, Stored
from kcm_cli.sandbox.apiserver.types import LONGEST_KEY, Tree, User

GROUP = "rbac.authorization.k8s.io"
ROLES, CLUSTER_ROLES = GVR(GROUP, "v1", "roles"), GVR(GROUP, "v1", "clusterroles")
ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS = (
    GVR(GROUP, "v1", "rolebindings"),
    GVR(GROUP, "v1", "clusterrolebindings"),
)

_REMEMBERED = 4096
_MOST_KEPT = 250_000
"""The permissions of all remembered users take about 60 MB: some hundred users with the role ``edit``."""
_MOST_INDEXED = 1000
"""A rule of some kilobytes may have billions of permissions."""
_Identity = tuple[str, tuple[str, ...]]


class _Grant(msgspec.Struct, frozen=True):
    """A rule's names (empty for all objects), and the reason for which it applies."""

    names: tuple[str, ...]
    reason: str


class Grants(msgspec.Struct):
    """The rules of a user by the bindings of a scope (the cluster or a namespace). errors: about missing roles.
    size: the number of indexed permissions.
    """

    rules: list[Rule] = msgspec.field(default_factory=list)
    errors: list[str] = msgspec.field(default_factory=list)
    size: int = 0
    _resources: dict[tuple[str, str, str], list[_Grant]] = msgspec.field(default_factory=dict)
    _wide: list[tuple[Rule, str]] = msgspec.field(default_factory=list)
    """Rules with too many permissions for the index."""
    _urls: list[tuple[Rule, str]] = msgspec.field(default_factory=list)

    def add(self, rule: Rule, reason: str) -> None:
        """Add a rule of a bound role."""
        self.rules.append(rule)
        if rule.urls:
            self._urls.append((rule, reason))
        permissions = len(rule.verbs) * len(rule.groups) * len(rule.resources)
        if permissions > _MOST_INDEXED:
            self._wide.append((rule, reason))
            return
        self.size += permissions
        grant = _Grant(rule.names, reason)
        for verb in rule.verbs:
            for group in rule.groups:
                for resource in rule.resources:
                    self._resources.setdefault((verb, group, resource), []).append(grant)

    def allows(self, verb: str, group: str, plural: str, subresource: str, name: str) -> str | None:
        """The reason for which a request for a resource is allowed; None if it is denied."""
        found = self._resources
        if not found and not self._wide:
            return None
        words = (f"{plural}/{subresource}", f"*/{subresource}", "*") if subresource else (plural, "*")
        for each_verb in (verb, "*"):
            for each_group in (group, "*"):
                for word in words:
                    for grant in found.get((each_verb, each_group, word), ()):
                        if not grant.names or name in grant.names:
                            return grant.reason
        for rule, reason in self._wide:
            if rule.allows(verb, group, words, name):
                return reason
        return None

    def allows_url(self, verb: str, path: str) -> str | None:
        """The reason for which a request for a nonResourceURL is allowed; None if it is denied."""
        for rule, reason in self._urls:
            if rule.allows_url(verb, path):
                return reason
        return None


class Bindings:
    """Resolves users to grants."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rules: dict[tuple[str, str], list[Rule]] = {}
        self._by_subject: dict[str, dict[str, dict[str, Tree]]] = {}
        self._grants: dict[tuple[str, _Identity], Grants] = {}
        self._size = 0
        """That of all grants that are kept."""
        self._follows = False

    def grants(self, user: User, namespace: str) -> Grants:
        """The grants of a user by the bindings of a namespace (``""``: by cluster role bindings)."""
        self._follow()
        if namespace and namespace not in self._by_subject:
            return Grants()
        key = (namespace, (user.name, user.groups))
        known = self._grants.get(key)
        if known is None:
            known = self._resolve(user, namespace)
            if len(self._grants) >= _REMEMBERED or self._size + known.size > _MOST_KEPT:
                self._forget()
            if user.length <= LONGEST_KEY:
                self._grants[key] = known
                self._size += known.size
        return known

    def _forget(self) -> None:
        self._grants.clear()
        self._size = 0

    def role_rules(self, kind: str, namespace: str, name: str) -> list[Rule] | None:
        """The rules of a role that a binding of this namespace refers to; None if it does not exist."""
        self._follow()
        where = namespace if kind == "Role" else ""
        known = self._rules.get((where, name))
        if known is None:
            stored = self._store.get(ROLES if kind == "Role" else CLUSTER_ROLES, where, name)
            if stored is None:
                return None
            known = self._rules[where, name] = rules_of(stored.doc)
        return known

    def _follow(self) -> None:
        """Index the objects, and from then on each change, with the first question: a server whose only users are
        masters has none."""
        if self._follows:
            return
        self._follows = True
        for gvr in (ROLES, CLUSTER_ROLES):
            self._store.subscribe(gvr, self._role_changed)
        for gvr in (ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS):
            self._store.subscribe(gvr, self._binding_changed)
            for stored in self._store.scan(gvr):
                self._index(stored)

    def _resolve(self, user: User, namespace: str) -> Grants:
        grants = Grants()
        for binding, subject in self._bound(user, namespace):
            ref = binding["roleRef"]
            rules = self.role_rules(ref["kind"], namespace, ref["name"])
            if rules is None:
                error = f"{ref['kind'].lower()}.{GROUP} {quote(ref['name'])} not found"
                if error not in grants.errors:
                    grants.errors.append(error)
                continue
            reason = _reason(binding, subject)
            for rule in rules:
                grants.add(rule, reason)
        return grants

    def _bound(self, user: User, namespace: str) -> Iterator[tuple[Tree, Tree]]:
        """The bindings with the user as a subject, sorted by name, each with the first such subject."""
        scope = self._by_subject.get(namespace)
        if not scope:
            return
        keys = dict.fromkeys([f"u:{user.name}", *(f"g:{group}" for group in user.groups)])
        found: dict[str, Tree] = {}
        for key in keys:
            found.update(scope.get(key, {}))
        for name in sorted(found):
            binding = found[name]
            subjects = binding.get("subjects") or ()
            yield binding, next(each for each in subjects if _subject_key(each, namespace) in keys)

    def _role_changed(self, event: Event) -> None:
        self._rules.pop((event.stored.namespace, event.stored.name), None)
        self._forget()

    def _binding_changed(self, event: Event) -> None:
        if event.previous is not None:
            self._unindex(event.previous)
        if event.type != "DELETED":
            self._index(event.stored)
        self._forget()

    def _index(self, stored: Stored) -> None:
        binding: Tree = stored.doc
        scope = self._by_subject.setdefault(stored.namespace, {})
        for subject in binding.get("subjects") or ():
            if key := _subject_key(subject, stored.namespace):
                scope.setdefault(key, {})[stored.name] = binding

    def _unindex(self, stored: Stored) -> None:
        binding: Tree = stored.doc
        scope = self._by_subject.get(stored.namespace, {})
        for subject in binding.get("subjects") or ():
            key = _subject_key(subject, stored.namespace)
            bindings = scope.get(key, {})
            if bindings.pop(stored.name, None) is not None and not bindings:
                del scope[key]
        if not scope:
            self._by_subject.pop(stored.namespace, None)


def _subject_key(subject: Tree, namespace: str) -> str:
    """The index key of a subject; empty if it matches no user."""
    kind, name = subject.get("kind"), subject.get("name", "")
    if kind == "User":
        return f"u:{name}"
    if kind == "Group":
        return f"g:{name}"
    namespace = subject.get("namespace") or namespace
    return f"u:{user_name(namespace, name)}" if kind == "ServiceAccount" and namespace else ""


def _reason(binding: Tree, subject: Tree) -> str:
    metadata, ref = binding["metadata"], binding["roleRef"]
    namespace = metadata.get("namespace", "")
    name = f"{metadata['name']}/{namespace}" if namespace else metadata["name"]
    kind = "RoleBinding" if namespace else "ClusterRoleBinding"
    who = subject.get("name", "")
    if subject["kind"] == "ServiceAccount":
        who = f"{who}/{subject.get('namespace') or namespace}"
    given = f"{kind} {quote(name)} of {ref['kind']} {quote(ref['name'])}"
    return f"RBAC: allowed by {given} to {subject['kind']} {quote(who)}"
