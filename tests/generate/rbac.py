"""The RBAC objects of a new cluster for bootstrap.json.gz, from ``rbac.txt`` (which explains its format).

upstream: plugin/pkg/auth/authorizer/rbac/bootstrappolicy
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from kcm_cli.machinery.codec import Doc

API_GROUP = "rbac.authorization.k8s.io"
AGGREGATION_PREFIX = f"{API_GROUP}/aggregate-to-"
_API_VERSION = f"{API_GROUP}/v1"
_VERBS = {
    "@read": "get,list,watch",
    "@write": "create,delete,deletecollection,patch,update",
    "@all": "create,delete,deletecollection,get,list,patch,update,watch",
}
_KINDS = {
    "clusterrole": "ClusterRole",
    "role": "Role",
    "clusterbinding": "ClusterRoleBinding",
    "binding": "RoleBinding",
}


class _Entry(msgspec.Struct, frozen=True):
    """An object of the file: its heading, and the words of its lines."""

    kind: str
    namespace: str
    name: str
    options: dict[str, str]
    lines: list[list[str]] = msgspec.field(default_factory=list)


def rbac_objects() -> list[Doc]:
    """ClusterRoles and their bindings, then those of kube-system and kube-public."""
    text = Path(__file__).with_name("rbac.txt").read_text(encoding="utf-8")
    return [doc for entry in _entries(text.splitlines()) for doc in _objects(entry)]


def _entries(lines: Iterable[str]) -> Iterator[_Entry]:
    entry: _Entry | None = None
    for line in lines:
        words = line.split()
        if not words or line.startswith("#"):
            continue
        if line.startswith(" "):
            assert entry is not None, line
            entry.lines.append(words)
            continue
        if entry is not None:
            yield entry
        entry = _opened(words)
    if entry is not None:
        yield entry


def _opened(words: list[str]) -> _Entry:
    kind = _KINDS[words[0]]
    namespaced = not kind.startswith("Cluster")
    namespace, name = (words[1], words[2]) if namespaced else ("", words[1])
    options = dict(word.split("=", 1) for word in words[3 if namespaced else 2 :])
    return _Entry(kind, namespace, name, options)


def _objects(entry: _Entry) -> Iterator[Doc]:
    if entry.kind.endswith("Binding"):
        subjects = [_subject(words[0]) for words in entry.lines]
        yield _binding(entry, entry.options.get("role", entry.name), subjects)
        return
    yield _role(entry)
    if account := entry.options.get("sa"):
        yield _binding(entry, entry.name, [_subject(f"sa:kube-system/{account}")])


def _metadata(entry: _Entry) -> Doc:
    labels = {"kubernetes.io/bootstrapping": "rbac-defaults"}
    if label := entry.options.get("label"):
        labels[f"{API_GROUP}/{label}"] = "true"
    metadata: Doc = {"name": entry.name}
    if entry.namespace:
        metadata["namespace"] = entry.namespace
    metadata["labels"] = labels
    metadata["annotations"] = {"rbac.authorization.kubernetes.io/autoupdate": "true"}
    return metadata


def _role(entry: _Entry) -> Doc:
    rules = [_rule(words) for words in entry.lines]
    doc: Doc = {
        "apiVersion": _API_VERSION,
        "kind": entry.kind,
        "metadata": _metadata(entry),
        "rules": rules or None,
    }
    if target := entry.options.get("aggregates"):
        selector = {"matchLabels": {f"{AGGREGATION_PREFIX}{target}": "true"}}
        doc["aggregationRule"] = {"clusterRoleSelectors": [selector]}
    return doc


def _rule(words: list[str]) -> Doc:
    verbs, groups, resources, *names = words
    rule: Doc = {"verbs": _VERBS.get(verbs, verbs).split(",")}
    if groups == "url":
        rule["nonResourceURLs"] = resources.split(",")
        return rule
    rule["apiGroups"] = ["" if group == "core" else group for group in groups.split(",")]
    rule["resources"] = resources.split(",")
    if names:
        rule["resourceNames"] = names[0].split(",")
    return rule


def _binding(entry: _Entry, role: str, subjects: list[Doc]) -> Doc:
    kind = "RoleBinding" if entry.namespace else "ClusterRoleBinding"
    role_kind = "Role" if entry.namespace else "ClusterRole"
    metadata = _metadata(_Entry(kind, entry.namespace, entry.name, {}))
    doc: Doc = {"apiVersion": _API_VERSION, "kind": kind, "metadata": metadata}
    if subjects:
        doc["subjects"] = subjects
    doc["roleRef"] = {"apiGroup": API_GROUP, "kind": role_kind, "name": role}
    return doc


def _subject(word: str) -> Doc:
    kind, _, name = word.partition(":")
    if kind == "sa":
        namespace, _, name = name.partition("/")
        return {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    return {"kind": {"user": "User", "group": "Group"}[kind], "apiGroup": API_GROUP, "name": name}
