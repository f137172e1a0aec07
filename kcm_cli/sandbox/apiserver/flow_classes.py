"""Classifies requests: responses name the matching FlowSchema and its priority level in two headers.

The sandbox does not throttle: no request is queued or rejected.

upstream: apiserver pkg/util/flowcontrol/rule.go, pkg/server/filters/priority-and-fairness.go (v1.36)
"""

from collections.abc import Hashable, Mapping, Sequence

import msgspec

from kcm_cli.sandbox.apiserver.controllers.flow_schemas import FLOW_SCHEMAS, PRIORITY_LEVELS
from kcm_cli.sandbox.apiserver.registry.media import KUBELET
from kcm_cli.sandbox.apiserver.store import Event, Store
from kcm_cli.sandbox.apiserver.types import LONGEST_KEY, RequestInfo, Tree, User

_ALL = "*"
_KEPT = 10_000


class _Schema(msgspec.Struct, frozen=True):
    """A FlowSchema and the response headers that name it."""

    rules: Sequence[Tree]
    headers: Mapping[str, str]


class FlowClasses:
    """Classifies by the FlowSchemas in the store. Caches results until one of them is written."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._schemas: list[_Schema] | None = None
        self._known: dict[Hashable, Mapping[str, str]] = {}
        store.subscribe(FLOW_SCHEMAS, self._written)
        store.subscribe(PRIORITY_LEVELS, self._written)

    def headers(self, user: User, info: RequestInfo) -> Mapping[str, str]:
        """The response headers, without a matching schema none. Takes about a microsecond."""
        if info.subresource in KUBELET:  # long-running: not classified
            return {}
        where = (info.group, info.plural, info.subresource, info.namespace) if info.is_resource else info.path
        key = (user.name, user.groups, info.verb, where)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            found = self._find(user, info)
            if user.length + len(info.verb) + len(info.path) <= LONGEST_KEY:
                self._known[key] = found
        return found

    def _written(self, event: Event) -> None:
        self._schemas = None
        self._known.clear()

    def _find(self, user: User, info: RequestInfo) -> Mapping[str, str]:
        if self._schemas is None:
            self._schemas = self._read()
        for schema in self._schemas:
            if any(_covers(rule, user, info) for rule in schema.rules):
                return schema.headers
        return {}

    def _read(self) -> list[_Schema]:
        found: list[tuple[int, str, _Schema]] = []
        for stored in self._store.list(FLOW_SCHEMAS):
            doc: Tree = stored.doc
            spec: Tree = doc["spec"]
            level = self._store.get(PRIORITY_LEVELS, "", spec["priorityLevelConfiguration"]["name"])
            if level is None:
                continue
            known: Tree = level.doc
            headers = {
                "x-kubernetes-pf-flowschema-uid": doc["metadata"]["uid"],
                "x-kubernetes-pf-prioritylevel-uid": known["metadata"]["uid"],
            }
            schema = _Schema(spec.get("rules") or (), headers)
            found.append((spec.get("matchingPrecedence", 0), stored.name, schema))
        return [schema for _, _, schema in sorted(found, key=lambda each: each[:2])]


def _covers(rule: Tree, user: User, info: RequestInfo) -> bool:
    if not any(_is_subject(subject, user) for subject in rule.get("subjects") or ()):
        return False
    if info.is_resource:
        return any(_has_resource(each, info) for each in rule.get("resourceRules") or ())
    return any(_has_path(each, info) for each in rule.get("nonResourceRules") or ())


def _is_subject(subject: Tree, user: User) -> bool:
    match subject["kind"]:
        case "User":
            return subject["user"]["name"] in (_ALL, user.name)
        case "Group":
            return subject["group"]["name"] == _ALL or subject["group"]["name"] in user.groups
        case _:
            account = subject["serviceAccount"]
            prefix = f"system:serviceaccount:{account['namespace']}:"
            return user.name.startswith(prefix) and account["name"] in (_ALL, user.name.removeprefix(prefix))


def _has_resource(rule: Tree, info: RequestInfo) -> bool:
    wanted = ((rule["verbs"], info.verb), (rule["apiGroups"], info.group), (rule["resources"], info.resource))
    if not all(_names(*each) for each in wanted):
        return False
    if info.namespace:
        return _names(rule.get("namespaces") or (), info.namespace)
    return bool(rule.get("clusterScope"))


def _has_path(rule: Tree, info: RequestInfo) -> bool:
    urls: Sequence[str] = rule["nonResourceURLs"]
    known = _names(urls, info.path) or any(url.endswith("/*") and info.path.startswith(url[:-1]) for url in urls)
    return known and _names(rule["verbs"], info.verb)


def _names(listed: Sequence[str], one: str) -> bool:
    return one in listed or _ALL in listed
