"""Roles and bindings.

Source: pkg/apis/rbac/validation/validation.go.
"""

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, metadata

_GROUP = "rbac.authorization.k8s.io"
_SUBJECTS = ("ServiceAccount", "User", "Group")


def validate_rules(doc: Tree, *, namespaced: bool) -> Errors:
    for index, rule in enumerate(doc.get("rules") or ()):
        yield from _rule(rule, namespaced, f"rules[{index}]")


def _rule(rule: Tree, namespaced: bool, path: str) -> Errors:
    if not rule.get("verbs"):
        yield errors.required(f"{path}.verbs", "verbs must contain at least one value")
    urls = rule.get("nonResourceURLs")
    if urls:
        if namespaced:
            yield errors.invalid(f"{path}.nonResourceURLs", urls, "namespaced rules cannot apply to non-resource URLs")
        if any(rule.get(field) for field in ("apiGroups", "resources", "resourceNames")):
            detail = "rules cannot apply to both regular resources and non-resource URLs"
            yield errors.invalid(f"{path}.nonResourceURLs", urls, detail)
        return
    if not rule.get("apiGroups"):
        yield errors.required(f"{path}.apiGroups", "resource rules must supply at least one api group")
    if not rule.get("resources"):
        yield errors.required(f"{path}.resources", "resource rules must supply at least one resource")


def validate_binding_update(new: Tree, old: Tree, *, namespaced: bool) -> Errors:
    yield from validate_binding(new, namespaced=namespaced)
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])
    ref = new.get("roleRef") or {}
    if ref != (old.get("roleRef") or {}):
        fields = (("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name"))
        shown = {field: ref.get(source, "") for field, source in fields}
        yield errors.invalid("roleRef", shown, "cannot change roleRef")


def validate_binding(doc: Tree, *, namespaced: bool) -> Errors:
    yield from metadata.validate_meta(doc["metadata"], namespaced, metadata.path_segment)
    ref = doc.get("roleRef") or {}
    group, kind, name = ref.get("apiGroup", ""), ref.get("kind", ""), ref.get("name", "")
    if group != _GROUP:
        yield errors.not_supported("roleRef.apiGroup", group, [_GROUP])
    kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    if kind not in kinds:
        yield errors.not_supported("roleRef.kind", kind, kinds)
    if name:
        yield from errors.invalid_each("roleRef.name", name, names.path_segment(name))
    else:
        yield errors.required("roleRef.name")
    for index, subject in enumerate(doc.get("subjects") or ()):
        yield from _subject(subject, namespaced, f"subjects[{index}]")


def _subject(subject: Tree, namespaced: bool, path: str) -> Errors:
    name, kind, group = subject.get("name", ""), subject.get("kind", ""), subject.get("apiGroup", "")
    if not name:
        yield errors.required(f"{path}.name")
    if kind == "ServiceAccount":
        if name:
            yield from errors.invalid_each(f"{path}.name", name, names.dns1123_subdomain(name))
        if group:
            yield errors.not_supported(f"{path}.apiGroup", group, [""])
        if not namespaced and not subject.get("namespace"):
            yield errors.required(f"{path}.namespace")
    elif kind not in _SUBJECTS:
        yield errors.not_supported(f"{path}.kind", kind, _SUBJECTS)
    elif group != _GROUP:
        yield errors.not_supported(f"{path}.apiGroup", group, [_GROUP])
